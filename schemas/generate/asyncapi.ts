/** The wire contract as an AsyncAPI 3.0 document: every subject, what travels there, and which role sends or receives it. */
import * as contract from "../src/index.ts";
import { type Channel, channels, type Message, type Part, rpcs } from "./channels.ts";

/** Who sends or receives on a channel. A controller is the trainer, or an operator. */
type Role = contract.WriterRole | "coordinator" | "controller" | "page";

interface Operation {
  readonly role: Role;
  readonly action: "send" | "receive";
  readonly channel: string;
  /** The channel of the answer, where it is a request. */
  readonly reply?: string | undefined;
}

const token = "1 to 128 of A-Z a-z 0-9 _ -.";

const parameters: ReadonlyMap<string, string> = new Map([
  ["run", `The run: ${token}`],
  ["instance", `The instance of the role: ${token}`],
  ["worker", `The worker of the instance: ${token}`],
  ["incarnation", `One term of a coordinator: ${token}`],
  ["role", "The role of the process."],
  ["digest", "The SHA-256 of the text, in lower-case hexadecimal digits."],
  ["part", "The number of the part, from 0."],
  ["rollout", `The rollout: ${token}`],
  ["attempt", "The attempt, from 0, in decimal digits without leading zeros."],
  ["sequence", "The sequence of the command in the stream, in decimal digits."],
  ["subject", "One or more tokens: what follows `hp.<run>.` in the subject that is copied."],
]);

function send(role: Role, channel: string, reply?: string): Operation {
  return { role, action: "send", channel, reply };
}

function receive(role: Role, channel: string, reply?: string): Operation {
  return { role, action: "receive", channel, reply };
}

/** Who asks which role for work. */
const callers = { environment: ["trainer"], agent: ["environment"], resources: ["environment", "agent"] } as const;

function callersOf(role: contract.Role, method: string): readonly Role[] {
  if (role === "model") return [];
  return callers[role].filter((caller) => (caller === "agent") === (role === "resources" && method === "tool"));
}

const operations: readonly Operation[] = [
  ...contract.operations.flatMap((operation) => [
    send("controller", `cmd.${operation}`),
    receive("coordinator", `cmd.${operation}`),
    send("controller", `ctl.${operation}`, "reply.ctl"),
    receive("coordinator", `ctl.${operation}`, "reply.ctl"),
  ]),
  send("coordinator", "lead", "reply.lead"),
  receive("coordinator", "lead", "reply.lead"),
  send("coordinator", "outcome"),
  receive("controller", "outcome"),
  send("coordinator", "control"),
  ...contract.roles.map((role) => receive(role, "control")),
  receive("trainer", "control"),
  ...contract.WriterRole.options.flatMap((role) => [send(role, `log.${role}`), receive("coordinator", `log.${role}`)]),
  ...contract.roles.map((role) => send("coordinator", `log.${role}`)),
  ...contract.WriterRole.options.flatMap((role) => [send(role, "blob"), receive(role, "blob")]),
  ...contract.roles.flatMap((role) => [send(role, "snapshot"), receive(role, "snapshot")]),
  send("environment", "result.environment"),
  receive("trainer", "result.environment"),
  ...rpcs.flatMap(({ role, name, asked, answered }) =>
    asked.flatMap((channel) => [
      ...callersOf(role, name).map((caller) => send(caller, channel, answered)),
      receive(role, channel, answered),
    ]),
  ),
  receive("page", "live"),
];

function reference(...path: readonly string[]): Part {
  return { $ref: `#/${path.join("/")}` };
}

function channelPart({ address, description, messages }: Channel): Part {
  const names = [...(address ?? "").matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const described = names.map((name) => [name, { description: parameters.get(name) }] as const);
  return {
    address,
    description,
    ...(described.length > 0 && { parameters: Object.fromEntries(described) }),
    messages: Object.fromEntries(messages.map(({ name }) => [name, reference("components", "messages", name)])),
  };
}

function messagePart({ name, summary, payload, contentType = "application/json", ...has }: Message): Part {
  const traits = (["appended", "traced"] as const).filter((trait) => has[trait] === true);
  const references = traits.map((trait) => reference("components", "messageTraits", trait));
  return { name, summary, contentType, ...(references.length > 0 && { traits: references }), payload };
}

function operationPart({ role, action, channel, reply }: Operation): Part {
  const answer = reply === undefined ? {} : { reply: { channel: reference("channels", reply) } };
  return { action, channel: reference("channels", channel), tags: [{ name: role }], ...answer };
}

/** The headers of a message that a process appends. Expectations are the fence between two lives of a process. */
const appendedHeaders: Part = {
  type: "object",
  properties: {
    "Nats-Msg-Id": { type: "string", description: "Unique for the run: by it a writer knows its own message again." },
    "Nats-Expected-Last-Subject-Sequence": { type: "string", description: "Where its subject has to end." },
    "Nats-Expected-Last-Subject-Sequence-Subject": {
      type: "string",
      description: "Another subject that has to end there instead.",
    },
    [contract.controlPlaneHeader]: { type: "string", description: "Present where the coordinator has to read it." },
  },
  required: ["Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence"],
};

/** The headers of a message whose sender has a trace of its own. */
const tracedHeaders: Part = {
  type: "object",
  properties: { traceparent: { type: "string", description: "The sender's span, by W3C Trace Context." } },
};

/** The document, as data. */
export function asyncApiDocument(): Part {
  const messages = new Map(channels.flatMap((channel) => channel.messages.map((message) => [message.name, message])));
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Holdpoint",
      version: `${contract.schemaVersion}.0.0`,
      description:
        "Checkpoint and restore for long-running RL rollouts, over NATS JetStream. Operations are named after who does them.",
      license: { name: "Apache-2.0" },
    },
    defaultContentType: "application/json",
    servers: { nats: { host: "localhost:4222", protocol: "nats", description: "nats-server 2.14 or later." } },
    channels: Object.fromEntries(channels.map((channel) => [channel.name, channelPart(channel)])),
    operations: Object.fromEntries(
      operations.map((operation) => [
        `${operation.role}.${operation.action}.${operation.channel}`,
        operationPart(operation),
      ]),
    ),
    components: {
      messages: Object.fromEntries([...messages].map(([name, message]) => [name, messagePart(message)])),
      messageTraits: { appended: { headers: appendedHeaders }, traced: { headers: tracedHeaders } },
    },
  };
}
