/** The subjects of a run as channels of AsyncAPI, with what travels on each. */
import type * as z from "zod";
import * as contract from "../src/index.ts";
import { fileOf } from "./json-schemas.ts";

/** A part of a document. */
export interface Part {
  readonly [name: string]: unknown;
}

/** What travels, by its name in the document. */
export interface Message {
  readonly name: string;
  readonly summary: string;
  readonly payload: Part;
  /** Whether a process appends it, with the headers of an append. */
  readonly appended?: true;
  /** Whether its sender may name its span in a header. */
  readonly traced?: true;
  /** Absent: JSON. */
  readonly contentType?: string;
}

export interface Channel {
  readonly name: string;
  /** The subject, its parameters in braces; null: an inbox that the asker makes up. */
  readonly address: string | null;
  readonly description: string;
  readonly messages: readonly Message[];
}

const run = "{run}";
const process = { instance: "{instance}", worker: "{worker}" };

function file(name: string): Part {
  return { $ref: `./json/${name}` };
}

/** Events that one process appended at once, each of them as `union` says. */
function envelope(union: string): Part {
  const events = { type: "array", items: file(union) };
  return { allOf: [file(fileOf(contract.Envelope)), { type: "object", properties: { events } }] };
}

/** What a call is answered with: a problem, or what the method gives. */
function rpcReply(data: z.ZodType): Part {
  return { allOf: [file(fileOf(contract.RpcReply)), { type: "object", properties: { data: file(fileOf(data)) } }] };
}

/** An empty message. */
const nothing: Part = { type: "string", maxLength: 0 };

const commands: readonly (readonly [contract.Operation, Message])[] = contract.operations.map((operation) => [
  operation,
  {
    name: `command.${operation}`,
    summary: `The command ${operation}.`,
    payload: file(`command.${operation}.json`),
    traced: true,
  },
]);

const outcome: Message = {
  name: "outcome",
  summary: "What became of a command.",
  payload: file(fileOf(contract.Outcome)),
};

function logMessage(role: contract.WriterRole): Message {
  const summary = `What a process of role ${role} said at once.`;
  return { name: `log.${role}`, summary, payload: envelope(`log.${role}.json`), appended: true };
}

const stored: readonly Channel[] = [
  ...commands.map(([operation, message]) => ({
    name: `cmd.${operation}`,
    address: contract.commandSubject(run, operation),
    description:
      "Fire and forget. A request is answered with the stream's acknowledgement, whose sequence names the command.",
    messages: [message],
  })),
  {
    name: "outcome",
    address: contract.outcomeSubject(run, 1).replace(/1$/, "{sequence}"),
    description: "What became of the command at this sequence, once.",
    messages: [outcome],
  },
  {
    name: "control",
    address: contract.controlSubject(run),
    description: "What the coordinator decided. Participants obey it and nothing else.",
    messages: [
      {
        name: "control",
        summary: "What the coordinator decided at once.",
        payload: envelope(fileOf(contract.ControlEvent)),
        appended: true,
      },
    ],
  },
  ...contract.WriterRole.options.map((role) => ({
    name: `log.${role}`,
    address: contract.logSubject(run, { role, ...process }),
    description: "All that one process has to say. It alone appends here, but for the fences of a restore.",
    messages: [logMessage(role)],
  })),
  {
    name: "result.environment",
    address: contract.resultSubject(run, { role: "environment", ...process }),
    description: "Finished episodes; each append expects the end of the process' log subject.",
    messages: [logMessage("environment")],
  },
];

/** Streams beside the log, for what an event cannot hold. */
const beside: readonly Channel[] = [
  {
    name: "blob",
    address: contract.blobSubject(run, "{digest}", 0).replace(/0$/, "{part}"),
    description:
      "One part of a text, by the digest of the whole. Part 0 is written last, and its message id ends with their number.",
    messages: [
      {
        name: "blob",
        summary: "A part of a text.",
        payload: { type: "string" },
        appended: true,
        contentType: "text/plain; charset=utf-8",
      },
    ],
  },
  {
    name: "snapshot",
    address: contract.snapshotSubject(run, `{role}.${process.instance}.${process.worker}`, 0).replace(/0$/, "{part}"),
    description:
      "One part of the latest snapshot of what a process has folded. An optimisation, which may be thrown away.",
    messages: [
      {
        name: "snapshot",
        summary: "A part of a snapshot, for the same program alone.",
        payload: { type: "string", format: "binary" },
        contentType: "application/octet-stream",
      },
    ],
  },
];

const services: readonly Channel[] = [
  ...commands.map(([operation, message]) => ({
    name: `ctl.${operation}`,
    address: contract.serviceSubject(run, operation),
    description: "The same command as a request: the coordinator appends it and answers when its outcome is there.",
    messages: [message],
  })),
  { name: "reply.ctl", address: null, description: "The inbox of who asked `ctl`.", messages: [outcome] },
  {
    name: "lead",
    address: contract.leadSubject(run, "{incarnation}"),
    description:
      "Whether the coordinator that leads lives, asked by those that stand by. Where it does not, nobody listens, and the broker says so at once.",
    messages: [{ name: "lead.asked", summary: "Asks whether it lives.", payload: nothing }],
  },
  {
    name: "reply.lead",
    address: null,
    description: "The inbox of who asked `lead`.",
    messages: [{ name: "lead.answered", summary: "It lives.", payload: nothing }],
  },
];

/** A method of a role, and the channels on which it is asked and answered. */
export interface Rpc {
  readonly role: contract.Role;
  readonly name: string;
  readonly asked: readonly string[];
  readonly answered: string;
}

interface MethodRow {
  readonly role: contract.Role;
  readonly name: string;
  readonly schemas: { readonly request: z.ZodType; readonly reply: z.ZodType };
}

function methodsOf(role: keyof typeof contract.rpcMethods): readonly MethodRow[] {
  const methods: Readonly<Record<string, MethodRow["schemas"]>> = contract.rpcMethods[role];
  return Object.entries(methods).map(([name, schemas]) => ({ role, name, schemas }));
}

const methodRows = [...methodsOf("environment"), ...methodsOf("agent"), ...methodsOf("resources")];

export const rpcs: readonly Rpc[] = methodRows.map(({ role, name }) => ({
  role,
  name,
  asked: name === "seed" ? [`rpc.${role}.seed`, `rpc.seed.${role}`] : [`rpc.${role}.${name}`],
  answered: `reply.rpc.${role}.${name}`,
}));

function rpcChannels({ role, name, schemas: { request, reply } }: MethodRow): readonly Channel[] {
  const asked = { name: `rpc.${role}.${name}`, summary: `Asks for ${name}.`, payload: file(fileOf(request)) };
  const answered = { name: `reply.${role}.${name}`, summary: `Answers ${name}.`, payload: rpcReply(reply) };
  const episode = { rollout: "{rollout}", attempt: 0 };
  const call: Channel = {
    name: `rpc.${role}.${name}`,
    address: contract.rpcSubject(run, episode, role, name).replace(".0.", ".{attempt}."),
    description: "To whoever holds the session, or to the instance that the body names.",
    messages: [asked],
  };
  const seed: Channel = {
    name: `rpc.seed.${role}`,
    address: contract.seedSubject(run, role, process.instance),
    description: "To the instance that was chosen; the body names the episode.",
    messages: [asked],
  };
  const inbox: Channel = {
    name: `reply.rpc.${role}.${name}`,
    address: null,
    description: "The inbox of who asked.",
    messages: [answered],
  };
  return name === "seed" ? [call, seed, inbox] : [call, inbox];
}

const live: Channel = {
  name: "live",
  address: contract.filters.live(run).replace(/>$/, "{subject}"),
  description: "The copy of a message of the stream, for pages and watchers; `subject` is the rest of its subject.",
  messages: stored.flatMap(({ messages }) => messages),
};

/** Every channel, by the order of `subjects.ts`. */
export const channels: readonly Channel[] = [
  ...stored,
  ...beside,
  ...services,
  ...methodRows.flatMap(rpcChannels),
  live,
];
