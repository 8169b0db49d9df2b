/** What each user of `nats.conf` may and may not say, asked of the real server. */
import { type BrokerUser, type RunningBroker, startBroker } from "@holdpoint/broker";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RawClient } from "./raw-client.ts";

const participants = ["environment", "agent", "resources", "model"] as const;
const writers = [...participants, "trainer"] as const;
const read = ["$JS.API.INFO", "$JS.API.STREAM.INFO.HP_d", "$JS.API.STREAM.MSG.GET.HP_d", "$JS.API.DIRECT.GET.HP_d"];
const consume = [
  "$JS.API.CONSUMER.CREATE.HP_d.c",
  "$JS.API.CONSUMER.CREATE.HP_d.c.hp.d.log.>",
  "$JS.API.CONSUMER.MSG.NEXT.HP_d.c",
  "$JS.API.CONSUMER.INFO.HP_d.c",
  "$JS.API.CONSUMER.DELETE.HP_d.c",
  "$JS.ACK.HP_d.c.1.2.3.4.5",
];
const decide = ["hp.d.control", "hp.d.outcome.7"];
const command = ["hp.d.cmd.prepare", "hp.d.ctl.prepare"];
const make = ["$JS.API.STREAM.CREATE.HP_d", "$JS.API.STREAM.UPDATE.HP_d", "$JS.API.STREAM.PURGE.HP_d"];
const destroy = ["$JS.API.STREAM.DELETE.HP_d", "$JS.API.STREAM.MSG.DELETE.HP_d"];
const blobs = ["hpb.d.abc.0"];
const calls = ["hp.d.rpc.r-1.0.agent.activate", "hp.d.rpc.seed.resources.box"];

function logOf(role: string): string {
  return `hp.d.log.${role}.i.0`;
}

interface Rules {
  readonly publish: readonly string[];
  readonly neverPublish: readonly string[];
  readonly subscribe: readonly string[];
  readonly neverSubscribe: readonly string[];
}

function participant(role: (typeof participants)[number]): Rules {
  const result = "hp.d.result.environment.i.0";
  const others = participants.filter((other) => other !== role);
  return {
    publish: [
      logOf(role),
      ...(role === "environment" ? [result] : []),
      ...read,
      ...consume,
      ...blobs,
      ...calls,
      "_INBOX_agent.x.1",
    ],
    neverPublish: [
      ...writers.filter((writer) => writer !== role).map(logOf),
      ...(role === "environment" ? ["hp.d.result.agent.i.0"] : [result]),
      ...decide,
      ...command,
      ...make,
      ...destroy,
      "live.hp.d.control",
      "$JS.API.CONSUMER.RESET.HP_d.c",
    ],
    subscribe: [`_INBOX_${role}.>`, `hp.d.rpc.*.*.${role}.*`, `hp.d.rpc.seed.${role}.i`, "live.hp.d.>"],
    neverSubscribe: [
      ">",
      "hp.>",
      "hp.d.control",
      "_INBOX.>",
      ...others.flatMap((other) => [`_INBOX_${other}.>`, `hp.d.rpc.*.*.${other}.*`]),
    ],
  };
}

const rules: Readonly<Record<Exclude<BrokerUser, "web" | "sys">, Rules>> = {
  coordinator: {
    publish: [
      ...decide,
      "hp.d.cmd.prepare",
      "hp.d.lead.coordinator-1",
      ...writers.map(logOf),
      ...read,
      ...make,
      ...consume,
      ...blobs,
      "_INBOX.x.1",
      "_INBOX_operator.x",
    ],
    neverPublish: ["hp.d.result.environment.i.0", "hp.d.ctl.prepare", "live.hp.d.control", ...destroy],
    subscribe: ["_INBOX_coordinator.>", "hp.d.ctl.*", "hp.d.lead.coordinator-1", "$SRV.>", "live.hp.d.>"],
    neverSubscribe: [">", "hp.>", "_INBOX_agent.>", "hp.d.rpc.*.*.agent.*"],
  },
  environment: participant("environment"),
  agent: participant("agent"),
  resources: participant("resources"),
  model: participant("model"),
  trainer: {
    publish: [logOf("trainer"), ...command, ...read, ...consume, "$JS.API.CONSUMER.RESET.HP_d.c", ...blobs, ...calls],
    neverPublish: [...participants.map(logOf), "hp.d.result.environment.i.0", ...decide, ...make, ...destroy],
    subscribe: ["_INBOX_trainer.>", "live.hp.d.>"],
    neverSubscribe: [">", "hp.>", "_INBOX_operator.>", "_INBOX.>"],
  },
  operator: {
    publish: [...command, ...read, ...consume, "$SRV.INFO", "$SRV.PING.holdpoint"],
    neverPublish: [
      ...writers.map(logOf),
      "hp.d.result.environment.i.0",
      ...decide,
      ...make,
      ...destroy,
      ...blobs,
      ...calls,
    ],
    subscribe: ["_INBOX.>", "_INBOX_operator.>", "hp.>", "live.>"],
    neverSubscribe: [">", "_INBOX_agent.>", "hp.d.rpc.r-1.0.agent.activate", "$SYS.>"],
  },
};

const web: Rules = {
  publish: [...read, "hp.d.ctl.status", "hp.d.ctl.discover", "$SRV.STATS"],
  neverPublish: [
    ...writers.map(logOf),
    ...decide,
    ...command,
    "hp.d.cmd.status",
    ...consume,
    ...make,
    ...destroy,
    ...blobs,
    ...calls,
  ],
  subscribe: ["_INBOX_web.>", "live.hp.d.>"],
  neverSubscribe: [">", "hp.>", "_INBOX.>", "_INBOX_operator.>"],
};

/** Where the server differs from `wanted`: what it refuses and should not, what it grants and should not. */
async function differences(client: RawClient, wanted: Rules): Promise<string[]> {
  const found: string[] = [];
  const publish = (subject: string) => client.mayPublish(subject);
  const subscribe = (subject: string) => client.maySubscribe(subject);
  for (const subject of wanted.publish) if (!(await publish(subject))) found.push(`refuses to publish ${subject}`);
  for (const subject of wanted.subscribe)
    if (!(await subscribe(subject))) found.push(`refuses to subscribe ${subject}`);
  for (const subject of wanted.neverPublish) if (await publish(subject)) found.push(`lets publish ${subject}`);
  for (const subject of wanted.neverSubscribe) if (await subscribe(subject)) found.push(`lets subscribe ${subject}`);
  client.close();
  return found;
}

type Asker = Exclude<BrokerUser, "sys">;
interface Question {
  readonly asker: Asker;
  readonly subject: string;
  readonly answerer: Exclude<BrokerUser, "sys" | "web">;
}

/** Who asks whom: workers of one instance ask each other, and so do coordinators. */
const questions: readonly Question[] = [
  { asker: "coordinator", subject: "hp.d.lead.coordinator-1", answerer: "coordinator" },
  { asker: "coordinator", subject: "$SRV.PING", answerer: "coordinator" },
  ...(["trainer", "operator", "web"] as const).map((asker) => {
    return { asker, subject: "hp.d.ctl.status", answerer: "coordinator" } as const;
  }),
  ...(["operator", "web"] as const).map((asker) => {
    return { asker, subject: "$SRV.STATS", answerer: "coordinator" } as const;
  }),
  ...writers.flatMap((asker) =>
    participants.flatMap((answerer) => [
      { asker, subject: `hp.d.rpc.r-1.0.${answerer}.holder`, answerer },
      { asker, subject: `hp.d.rpc.seed.${answerer}.i`, answerer },
    ]),
  ),
];

let broker: RunningBroker;
beforeAll(async () => {
  broker = await startBroker();
});
afterAll(() => broker.stop());

describe("the users of nats.conf", () => {
  test.each(Object.entries(rules))(
    "[L1] %s may say and hear what is its own, and nothing else",
    async (user, wanted) => {
      const credentials = broker.credentialsOf(user as keyof typeof rules);
      expect(await differences(await RawClient.connect(broker.url, credentials), wanted)).toEqual([]);
    },
  );

  test.each(questions)("$answerer hears and answers what $asker asks on $subject", async (question) => {
    const { asker, answerer, subject } = question;
    const url = asker === "web" ? broker.wsUrl : broker.url;
    const asking = await RawClient.connect(url, broker.credentialsOf(asker));
    const answering = await RawClient.connect(broker.url, broker.credentialsOf(answerer));
    const inbox = `${broker.credentialsOf(asker).inboxPrefix}.x.1`;
    const may = {
      ask: await asking.mayPublish(subject),
      hearTheAnswer: await asking.maySubscribe(inbox),
      hear: await answering.maySubscribe(subject),
      answer: await answering.mayPublish(inbox),
    };
    for (const client of [asking, answering]) client.close();
    expect(may).toEqual({ ask: true, hearTheAnswer: true, hear: true, answer: true });
  });

  test("web may read over WebSocket, and write nothing", async () => {
    const page = await RawClient.connect(broker.wsUrl, broker.credentialsOf("web"));
    expect(await differences(page, web)).toEqual([]);
  });

  test("web is refused over TCP", async () => {
    await expect(RawClient.connect(broker.url, broker.credentialsOf("web"))).rejects.toThrow(/Authorization Violation/);
  });

  test("nobody connects without a password, or with another's", async () => {
    const stolen = { ...broker.credentialsOf("coordinator"), password: broker.credentialsOf("agent").password };
    await expect(RawClient.connect(broker.url, undefined)).rejects.toThrow(/Authorization Violation/);
    await expect(RawClient.connect(broker.url, stolen)).rejects.toThrow(/Authorization Violation/);
  });

  test("sys sees the server, and no run", async () => {
    const client = await RawClient.connect(broker.url, broker.credentialsOf("sys"));
    expect(await client.maySubscribe("$SYS.>")).toBe(true);
    client.close();
  });
});
