import { type BrokerUser, type RunningBroker, startBroker } from "@holdpoint/broker";
import type { EventLog, StoredMessage } from "@holdpoint/eventsourcing";
import { Controller, resultOf } from "@holdpoint/client";
import { type Connection, connectTo, ensureStream, openLog } from "@holdpoint/jetstream";
import { filters, type Outcome, outcomeSubject } from "@holdpoint/schemas";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

let broker: RunningBroker;
const connections: Connection[] = [];
let runs = 0;

beforeAll(async () => {
  broker = await startBroker();
});
afterAll(async () => {
  for (const connection of connections) await connection.close();
  await broker.stop();
});

async function connectAs(user: BrokerUser): Promise<Connection> {
  const { password } = broker.credentialsOf(user);
  const connection = await connectTo({ url: broker.url, user, password, name: user });
  connections.push(connection);
  return connection;
}

interface Side {
  readonly run: string;
  readonly controller: Controller;
  readonly log: EventLog;
  readonly coordinator: EventLog;
}

async function newRun(): Promise<Side> {
  const run = `client-${runs++}`;
  const deciding = await connectAs("coordinator");
  await ensureStream(deciding, run);
  const connection = await connectAs("trainer");
  const log = openLog(connection, run);
  return { run, controller: new Controller({ connection, log, run }), log, coordinator: openLog(deciding, run) };
}

async function commandsOf({ run, log }: Side): Promise<StoredMessage[]> {
  const found: StoredMessage[] = [];
  const upTo = await log.lastSequence();
  await log.read({ upTo, subjects: [filters.commands(run)] }, (message) => found.push(message));
  return found;
}

async function arrived(side: Side): Promise<number> {
  return vi.waitFor(
    async () => {
      const [first] = await commandsOf(side);
      if (first === undefined) throw new Error("no command yet");
      return first.sequence;
    },
    { timeout: 30_000 },
  );
}

async function answer({ run, coordinator }: Side, command: number, outcome: Outcome): Promise<void> {
  const subject = outcomeSubject(run, command);
  const expected = { subject, sequence: 0 };
  await coordinator.append({ subject, body: JSON.stringify(outcome), messageId: `o-${command}`, expected });
}

function done(command: number): Outcome {
  return { ok: true, command, operation: "resume", result: { phase: "idle", checkpointId: null } };
}

const resume = { operation: "resume", checkpointId: "c1", timeoutMs: 5000 } as const;

test("a command carries the span of its sender, and none where there is none", async () => {
  const side = await newRun();
  const over = new AbortController();
  const options = { signal: over.signal, traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
  const waiting = [
    side.controller.command({ operation: "status" }, options),
    side.controller.command({ operation: "discover" }, { signal: over.signal }),
  ];
  await vi.waitFor(async () => expect(await commandsOf(side)).toHaveLength(2), { timeout: 20_000 });
  const sent = (await commandsOf(side)).map(({ subject, traceparent }) => [subject.split(".").at(-1), traceparent]);
  expect(Object.fromEntries(sent)).toEqual({ status: options.traceparent, discover: undefined });
  over.abort();
  await Promise.allSettled(waiting);
});

test("a command is in the stream with its body, and its outcome is what the coordinator wrote", async () => {
  const side = await newRun();
  const waiting = side.controller.command(resume);
  const sequence = await arrived(side);
  await answer(side, sequence, done(sequence));
  expect(await waiting).toEqual(done(sequence));
  const [command] = await commandsOf(side);
  expect(command?.subject).toBe(`hp.${side.run}.cmd.resume`);
  expect(JSON.parse(new TextDecoder().decode(command?.body))).toEqual({ checkpointId: "c1", timeoutMs: 5000 });
});

test("the same message id asks for the same outcome, also after it was given", async () => {
  const side = await newRun();
  const waiting = [1, 2].map(() => side.controller.command(resume, { messageId: "one" }));
  const sequence = await arrived(side);
  await answer(side, sequence, done(sequence));
  expect(await Promise.all(waiting)).toEqual([done(sequence), done(sequence)]);
  expect(await side.controller.command(resume, { messageId: "one" })).toEqual(done(sequence));
  expect(await commandsOf(side)).toHaveLength(1);
});

test("two commands without a message id are two", async () => {
  const side = await newRun();
  const over = new AbortController();
  const waiting = [1, 2].map(() => side.controller.command(resume, { signal: over.signal }));
  await vi.waitFor(async () => expect(await commandsOf(side)).toHaveLength(2), { timeout: 30_000 });
  over.abort(new Error("enough"));
  for (const wait of waiting) await expect(wait).rejects.toThrow("enough");
});

test("an outcome is waited for while the broker is killed and comes back", async () => {
  const side = await newRun();
  const waiting = side.controller.command(resume);
  const sequence = await arrived(side);
  await broker.kill();
  await broker.restart();
  await answer(side, sequence, done(sequence));
  expect(await waiting).toEqual(done(sequence));
});

test("a command that is given while the broker is away is sent once it is back", async () => {
  const side = await newRun();
  await broker.kill();
  const waiting = side.controller.command(resume);
  await broker.restart();
  const sequence = await arrived(side);
  await answer(side, sequence, done(sequence));
  expect(await waiting).toEqual(done(sequence));
});

test("a malformed command is refused with the field that is wrong, and not sent", async () => {
  const side = await newRun();
  const wrong = { ...resume, checkpointId: ".c" };
  await expect(side.controller.command(wrong)).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining("checkpointId"),
  });
  expect(await commandsOf(side)).toEqual([]);
});

test("a failure becomes an error with its code and what was learnt before", () => {
  const result = { phase: "preparing" as const, checkpointId: "c1", ready: false };
  const problem = { code: "deadline_exceeded" as const, message: "not ready" };
  const outcome: Outcome = { ok: false, command: 7, operation: "prepare", problem, result };
  expect(() => resultOf(outcome)).toThrow(
    expect.objectContaining({
      code: "deadline_exceeded",
      message: "prepare: not ready",
      details: { command: 7, result },
    }),
  );
  expect(resultOf(done(1))).toEqual({ phase: "idle", checkpointId: null });
});
