import { maxCommandBytes } from "@holdpoint/checkpoint";
import { describe, expect, test } from "vitest";
import { expectFailure, expectSuccess, member, Simulation, startedRun } from "./simulation.ts";

async function refusal(simulation: Simulation, operation: string, body: string): Promise<string> {
  const command = await simulation.command(operation, body);
  const before = await simulation.log.lastSequence();
  await simulation.settle();
  expect(await simulation.story(before)).toEqual(["command.refused"]);
  const outcome = await simulation.outcome(command);
  expect(outcome).toMatchObject({ operation: operation.slice(0, 128) });
  return expectFailure(outcome, "invalid_request");
}

describe("a malformed command is refused with words of what was expected", () => {
  const malformed: [string, string, string, RegExp][] = [
    ["that is no JSON", "prepare", "{", /^prepare: .*not JSON.*; expected a JSON object$/s],
    ["that is no object", "prepare", "[]", /^prepare: .*expected object/is],
    ["with an unknown field", "prepare", '{"checkpointId":"c1","timeoutMs":1,"foo":1}', /foo/],
    ["with a bad id", "prepare", '{"checkpointId":"a b","timeoutMs":1}', /expected 1 to 128 of A-Z a-z 0-9 \. _ -/],
    ["without a deadline", "prepare", '{"checkpointId":"c1"}', /expected exactly one of deadlineAt/],
    [
      "with two deadlines",
      "resume",
      '{"checkpointId":"c1","timeoutMs":1,"deadlineAt":"2026-11-29T12:00:00Z"}',
      /expected exactly one of deadlineAt/,
    ],
    ["of an unknown operation", "explode", "{}", /^no such operation; expected one of discover, status, prepare,/],
    ["on a subject below an operation", "prepare.now", "{}", /^no such operation/],
    [
      "with a rollout that is no token",
      "retire",
      '{"rollouts":[{"rollout":"a.b","attempt":0}],"timeoutMs":1}',
      /expected 1 to 128/,
    ],
  ];
  test.each(malformed)("%s", async (_what, operation, body, words) => {
    const simulation = await startedRun();
    expect(await refusal(simulation, operation, body)).toMatch(words);
    expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));
  });

  test("that is oversized, without being read", async () => {
    const simulation = await startedRun();
    const fits = `{"timeoutMs":1000${" ".repeat(maxCommandBytes - 18)}}`;
    expect(await refusal(simulation, "status", `${fits} `)).toBe(
      "a command has at most 524288 bytes, this one has 524289",
    );
    const command = await simulation.command("status", fits);
    await simulation.settle();
    expectSuccess(await simulation.outcome(command));
  });

  test("that is no UTF-8", async () => {
    const simulation = await startedRun();
    const command = await simulation.raw("hp.demo.cmd.status", "{}");
    const message = await simulation.log.get(command);
    Object.assign(message, { body: new Uint8Array([0xff, 0xfe]) });
    await simulation.settle();
    expect(expectFailure(await simulation.outcome(command), "invalid_request")).toContain("not UTF-8");
  });

  test("in few words, however long it is", async () => {
    const simulation = await startedRun();
    const fields = Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`field${at}`, at]));
    const words = await refusal(simulation, "prepare", JSON.stringify(fields));
    expect(words.length).toBe(2000);
    const name = "x".repeat(300);
    const command = await simulation.command(name, "{}");
    await simulation.settle();
    expect((await simulation.outcome(command)).operation).toBe("x".repeat(128));
  });
});

test("a question needs no body at all", async () => {
  const simulation = await startedRun();
  const command = await simulation.command("status", "");
  await simulation.settle();
  expect(await simulation.outcome(command)).toMatchObject({ ok: true });
});

async function refused(simulation: Simulation): Promise<unknown[]> {
  await simulation.settle();
  return (await simulation.control()).flatMap((recorded) =>
    recorded.event.type === "input.refused" ? [recorded.event.data] : [],
  );
}

describe("a malformed message of a participant is refused in the log, and nothing else happens", () => {
  const malformed: [string, string, string, RegExp][] = [
    ["no JSON", "hp.demo.log.agent.agent9.0", "{", /not JSON/],
    ["no envelope", "hp.demo.log.agent.agent9.0", "{}", /not an envelope/],
    [
      "an event that is not what its type says",
      "hp.demo.log.agent.agent9.0",
      '{"schema":1,"incarnation":"i","events":[{"type":"participant.announced","data":{"mode":"strange"}}]}',
      /event 0 \(participant\.announced\)/,
    ],
    [
      "an event that its role cannot say",
      "hp.demo.log.agent.agent9.0",
      '{"schema":1,"incarnation":"i","events":[{"type":"episode.opened","data":{"rollout":"r1","attempt":0}}]}',
      /episode\.opened/,
    ],
    ["a role that is none", "hp.demo.log.wizard.w.0", "{}", /^not a subject of this protocol$/],
    ["a result of a malformed writer", "hp.demo.result.environment", "{}", /^not a subject of this protocol$/],
  ];
  test.each(malformed)("%s", async (_what, subject, body, words) => {
    const simulation = await startedRun();
    const sequence = await simulation.raw(subject, body, true);
    expect(await refused(simulation)).toEqual([
      { sequence, subject, problem: { code: "invalid_request", message: expect.stringMatching(words) } },
    ]);
    expectSuccess(await simulation.obeyed("checkpoint", { checkpointId: "c1" }));
    await simulation.takeOver();
    expect(await refused(simulation)).toHaveLength(1);
  });

  test("one refusal for a message with several faults, and the good events of it count", async () => {
    const simulation = await startedRun();
    const announced = { type: "participant.announced", data: { mode: "exported", endpoint: null, lastAtMs: null } };
    const bad = { type: "participant.answered", data: {} };
    const body = JSON.stringify({ schema: 1, incarnation: "i", events: [bad, announced, bad] });
    await simulation.raw("hp.demo.log.agent.agent9.0", body, true);
    expect(await refused(simulation)).toHaveLength(1);
    const { participants } = expectSuccess(await simulation.obeyed("status", {}));
    expect(participants?.map(({ instance }) => instance)).toContain("agent9");
  });

  test("a long subject is cut", async () => {
    const simulation = await startedRun();
    await simulation.raw(`hp.demo.log.${"x".repeat(400)}`, "{}", true);
    expect(await refused(simulation)).toEqual([expect.objectContaining({ subject: `hp.demo.log.${"x".repeat(244)}` })]);
  });

  test("a hundred at once, and the rest after them", async () => {
    const simulation = await startedRun();
    for (let at = 0; at < 230; at++) await simulation.raw(`hp.demo.log.wizard.${at}.0`, "{}", true);
    simulation.appends = 0;
    expect(await refused(simulation)).toHaveLength(230);
    expect(simulation.appends).toBe(3);
    expect(simulation.state.unreadable).toEqual([]);
  });

  test("what is not marked as a concern of the control plane is not even looked at", async () => {
    const simulation = await startedRun();
    await simulation.raw("hp.demo.log.agent.agent9.0", "{ not even JSON", false);
    expect(await refused(simulation)).toEqual([]);
  });

  test("on control, by whoever got there", async () => {
    const simulation = await startedRun();
    const body = '{"schema":1,"incarnation":"i","events":[{"type":"checkpoint.opened","data":{}}]}';
    const sequence = await simulation.raw("hp.demo.control", body, true);
    expect(await refused(simulation)).toEqual([expect.objectContaining({ sequence, subject: "hp.demo.control" })]);
  });
});

describe("what nobody was asked", () => {
  test("an answer to an ask that is none, is over, or was for something else, changes nothing", async () => {
    const simulation = await startedRun();
    const agent = member(simulation, "agent");
    agent.behaviour.prepare = () => undefined;
    const prepare = await simulation.command("prepare", { checkpointId: "c1", timeoutMs: 30_000 });
    await simulation.settle();
    const ask = (await simulation.control()).findLast(({ event }) => event.type === "participants.asked");
    for (const data of [
      { asked: 9999, operation: "prepare", checkpointId: "c1" },
      { asked: ask?.sequence, operation: "capture", checkpointId: "c1" },
    ]) {
      await agent.say({ type: "participant.answered", data });
    }
    await simulation.settle();
    expect(await simulation.hasOutcome(prepare)).toBe(false);
    agent.behaviour = {};
    await simulation.settle();
    await agent.say({
      type: "participant.answered",
      data: { asked: ask?.sequence, operation: "prepare", checkpointId: "c1" },
    });
    await simulation.settle();
    expectSuccess(await simulation.outcome(prepare));
  });

  test("a session captured for another id is not kept", async () => {
    const simulation = await startedRun();
    const data = { rollout: "r1", attempt: 0, checkpointId: "c7", digest: "0".repeat(64), edges: {} };
    await member(simulation, "agent").say({ type: "session.captured", data });
    await simulation.settle();
    expect(simulation.state.captures.size).toBe(0);
  });

  test("[C13] what sessions do leaves nothing in the coordinator's state", async () => {
    const simulation = await startedRun();
    const sizes = () =>
      Object.values(simulation.state).map((book) => (book instanceof Map || book instanceof Set ? book.size : 0));
    const before = sizes();
    const agent = member(simulation, "agent");
    for (let turn = 0; turn < 500; turn++) {
      await agent.say({ type: "call.requested", data: { rollout: "r1", attempt: 0, turn, request: "0".repeat(64) } });
    }
    await simulation.settle();
    expect(sizes()).toEqual(before);
    expect(simulation.state.ends.get(agent.subject)).toBe(agent.end);
  });
});

function bodyOf(type: string, data: object): string {
  return JSON.stringify({ schema: 1, incarnation: "i", events: [{ type, data }] });
}

test("a goodbye or a fence of a process that never announced itself changes nothing", async () => {
  const simulation = new Simulation();
  await simulation.takeOver();
  await simulation.raw("hp.demo.log.agent.a.0", bodyOf("participant.left", {}), true);
  await simulation.raw("hp.demo.log.agent.a.0", bodyOf("participant.fenced", { command: 1 }), true);
  await simulation.raw("hp.demo.log.trainer.t.0", bodyOf("participant.announced", {}), true);
  await simulation.settle();
  expect(simulation.state.processes.size).toBe(0);
  expect(await simulation.story()).toEqual([]);
});
