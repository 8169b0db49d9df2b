/** Malformed, oversized, unknown and badly addressed messages, on every subject that a user may write to. */
import { decodeEvents, type EventLog, eventSchema, parseJson } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openLog, publishCommand } from "@holdpoint/jetstream";
import { ControlEvent, logEvents, Outcome, RpcReply } from "@holdpoint/schemas";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startSystem, type System } from "./system.ts";

let system: System;
let connection: Connection;
let log: EventLog;

beforeAll(async () => {
  system = await startSystem();
  const { NATS_URL: url = "", NATS_USER: user = "", NATS_PASSWORD: password = "" } = system.environmentOf("trainer");
  connection = await connectTo({ url, user, password, name: "bad input" });
  log = openLog(connection, system.run);
});

afterAll(async () => {
  await connection.close();
  await system.stop();
});

async function ask(subject: string, body: string): Promise<unknown> {
  const answer = parseJson(await connection.request(subject, body, { timeoutMs: 30_000 }));
  return answer.ok ? answer.value : answer.why;
}

/** The outcome of the command at `sequence`, once it is there. */
async function outcomeOf(sequence: number): Promise<Outcome> {
  for (;;) {
    const message = await log.lastOn(`hp.${system.run}.outcome.${sequence}`);
    if (message === undefined) continue;
    const json = parseJson(message.body);
    return Outcome.parse(json.ok ? json.value : undefined);
  }
}

let sent = 0;
function command(operation: string, body: string): Promise<number> {
  sent += 1;
  return publishCommand(connection, system.run, {
    subject: `hp.${system.run}.cmd.${operation}`,
    body,
    messageId: `bad-${sent}`,
  });
}

test.each([
  ["no JSON", "prepare", "{"],
  ["not UTF-8 text but JSON of the wrong kind", "prepare", "[]"],
  ["an unknown field", "prepare", '{"checkpointId":"c1","timeoutMs":1000,"surprise":1}'],
  ["two deadlines", "prepare", '{"checkpointId":"c1","timeoutMs":1000,"deadlineAt":"2030-01-01T00:00:00Z"}'],
  ["no deadline", "prepare", '{"checkpointId":"c1"}'],
  ["a bad id", "prepare", '{"checkpointId":"../c1","timeoutMs":1000}'],
  ["an id of 129 characters", "resume", `{"checkpointId":"${"c".repeat(129)}","timeoutMs":1000}`],
  ["an operation that there is not", "dance", "{}"],
  ["an operation of several tokens", "prepare.now", "{}"],
  ["an empty body", "prepare", ""],
  ["a large body", "prepare", JSON.stringify({ checkpointId: "c1", timeoutMs: 1000, filler: "x".repeat(500_000) })],
])("a command with %s is refused with a typed outcome, and the next is obeyed", async (_, operation, body) => {
  const outcome = await outcomeOf(await command(operation, body));
  expect(outcome).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
  expect(await outcomeOf(await command("status", "{}"))).toMatchObject({ ok: true, operation: "status" });
});

test("a refused command says what was wrong and what was expected", async () => {
  const outcome = await outcomeOf(await command("prepare", '{"checkpointId":"c1"}'));
  expect(outcome.ok ? "" : outcome.problem.message).toMatch(/exactly one of deadlineAt .* and timeoutMs/);
});

test("a service request that is malformed is answered with a typed error", async () => {
  const answer = await ask(`hp.${system.run}.ctl.prepare`, "{");
  expect(JSON.stringify(answer)).toContain("invalid_request");
  expect(await ask(`hp.${system.run}.ctl.status`, "{}")).toMatchObject({ ok: true });
});

test.each([
  ["no JSON", "rpc.seed.environment.main", "{", "invalid_request"],
  ["no rollout", "rpc.seed.environment.main", "{}", "rollout_id_required"],
  ["an unknown field", "rpc.seed.environment.main", '{"rollout":"r","attempt":0,"surprise":1}', "invalid_request"],
  ["no such method", "rpc.r.0.agent.dance", '{"to":"main"}', "invalid_request"],
  ["an attempt that is no number", "rpc.r.x.agent.close", '{"to":"main"}', "rollout_id_required"],
  ["no such session", "rpc.r.0.agent.close", '{"to":"main"}', "not_found"],
  ["a tool call without a session", "rpc.r.0.resources.tool", '{"to":"main","turn":0}', "not_found"],
])("an rpc with %s is answered with a typed error", async (_, tail, body, code) => {
  const reply = RpcReply.parse(await ask(`hp.${system.run}.${tail}`, body));
  expect(reply).toMatchObject({ ok: false, problem: { code } });
});

test("what a participant refused as malformed stands in its log", async () => {
  await ask(`hp.${system.run}.rpc.seed.environment.main`, "{");
  const refusals: string[] = [];
  const events = eventSchema(logEvents.environment);
  while (refusals.length === 0) {
    const upTo = await log.lastSequence();
    await log.read({ upTo, subjects: [`hp.${system.run}.log.environment.>`] }, (message) => {
      for (const { event } of decodeEvents(message, events).events) {
        if (event.type === "input.refused") refusals.push(event.data.problem.code);
      }
    });
  }
  expect(refusals).toContain("invalid_request");
});

test("a log message that is no envelope is named by the coordinator, and nobody stops", async () => {
  const subject = `hp.${system.run}.log.trainer.stray.0`;
  const draft = { subject, body: "{", messageId: "stray-1", controlPlane: true, expected: { subject, sequence: 0 } };
  const result = await log.append(draft);
  expect(result.stored).toBe(true);
  expect(await outcomeOf(await command("status", "{}"))).toMatchObject({ ok: true });
  const named: number[] = [];
  const events = eventSchema(ControlEvent);
  await log.read({ upTo: await log.lastSequence(), subjects: [`hp.${system.run}.control`] }, (message) => {
    for (const { event } of decodeEvents(message, events).events) {
      if (event.type === "input.refused") named.push(event.data.sequence);
    }
  });
  expect(named).toContain(result.stored ? result.sequence : 0);
});

test("after all of it the run still takes a checkpoint", async () => {
  const outcome = await outcomeOf(await command("checkpoint", '{"checkpointId":"c9","timeoutMs":60000}'));
  expect(outcome).toMatchObject({ ok: true, operation: "checkpoint" });
});
