/** The model server as a process: what a crash leaves, and what its successor makes of it. */
import { encodeEvents } from "@holdpoint/eventsourcing";
import { openBlobs, openLog } from "@holdpoint/jetstream";
import { sha256 } from "@holdpoint/participant";
import { logSubject } from "@holdpoint/schemas";
import { setTimeout as pause } from "node:timers/promises";
import { startTestBroker, type TestBroker } from "@holdpoint/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ask, bodyOf, headersOf, post, type Replied, undecided } from "./caller.ts";
import { ModelRun } from "./process.ts";

const episode = { rollout: "r1", attempt: 0 };
const received = ["call.started 0", "call.finished 0", "call.delivered 0"];

let broker: TestBroker;
let run: ModelRun;
beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());
beforeEach(async () => {
  run = await ModelRun.open(broker);
});
afterEach(() => run.stop());

/** A body to which the policy draws its answer. */
function drawingBody(turn: number): string {
  return bodyOf(turn, { model: "softmax@0", later: undecided });
}

describe("a model server that was killed", () => {
  test("[L9] is followed by one that answers from the ledger with the same bytes, and makes no call again", async () => {
    const first = await run.start();
    const before = await ask(first.url, { turn: 0 });
    expect(before.status).toBe(200);
    await first.process.kill();
    const second = await run.start();
    expect((await ask(second.url, { turn: 0 })).text).toBe(before.text);
    expect(await run.control.calls()).toEqual(received);
    expect(await ask(second.url, { turn: 1 })).toMatchObject({ status: 200 });
  });

  test("[L3] after it had started a call, is followed by one that makes it when it is asked again", async () => {
    const body = bodyOf(0);
    const subject = logSubject(run.run, { role: "model", instance: "main", worker: "0" });
    const data = { ...episode, turn: 0, request: sha256(body), policyVersion: 0 };
    const started = encodeEvents("before", [{ type: "call.started", data }]);
    const log = openLog(await broker.connectAs("model"), run.run);
    await log.append({ ...started, subject, messageId: "before-1", expected: { subject, sequence: 0 } });
    const { url } = await run.start();
    expect(await ask(url, { turn: 0 }, body)).toMatchObject({ status: 200 });
    expect(await run.control.calls()).toEqual(["call.started 0", ...received]);
  });

  test("is followed by one that is closed where the checkpoint is still open", async () => {
    const first = await run.start();
    const before = await ask(first.url, { turn: 0 });
    await run.control.close("c1");
    await first.process.kill();
    const second = await run.start();
    expect(await ask(second.url, { turn: 0 })).toMatchObject({ status: 503, code: "admission_closed" });
    expect(await run.control.calls()).toEqual([...received, "call.withheld 0"]);
    await run.control.open("c1");
    expect((await ask(second.url, { turn: 0 })).text).toBe(before.text);
  });

  test("again and again leaves each turn with one row, and the chain that no crash would have left", async () => {
    const turns = [0, 1, 2, 3, 4, 5];
    const { url } = await run.start();
    for (const turn of turns) await ask(url, { rollout: "calm", turn }, drawingBody(turn));
    const first = run.processes.at(-1);
    const killer = (async () => {
      await first?.kill();
      for (let kills = 0; kills < 2; kills++) await (await run.start()).process.kill();
      return (await run.start()).url;
    })();
    for (const turn of turns) await askThroughCrashes(turn, drawingBody(turn));
    await killer;
    const said = await run.control.said();
    const finished = said.flatMap(({ type, data }) => (type === "call.finished" ? [data] : []));
    const rowsOf = (rollout: string) =>
      finished.filter((row) => row.rollout === rollout).map(({ turn, response, staging }) => [turn, response, staging]);
    expect(rowsOf("r1")).toEqual(rowsOf("calm"));
  });
});

/** Asks whichever process serves, until there is an answer. */
async function askThroughCrashes(turn: number, body: string): Promise<Replied> {
  for (;;) {
    const output = run.processes.at(-1)?.output ?? "";
    const url = /"url":"([^"]+)"[^\n]*model serves/.exec(output)?.[1];
    const reply = url === undefined ? undefined : await ask(url, { turn }, body).catch(() => undefined);
    if (reply?.status === 200) return reply;
    await pause(5);
  }
}

test("a model server ends when another takes its place, and what it had not answered is not answered", async () => {
  const first = await run.start();
  await ask(first.url, { turn: 0 });
  const second = await run.start();
  await expect(ask(first.url, { turn: 1 })).rejects.toThrow("fetch failed");
  expect(await first.process.ended()).toBe(3);
  expect(await ask(second.url, { turn: 1 })).toMatchObject({ status: 200 });
});

test("a restored ledger goes on in a process that never held the original", async () => {
  const first = await run.start();
  for (const turn of [0, 1]) await ask(first.url, { turn });
  const { answer, cut } = await run.control.checkpoint("c1", [episode]);
  await first.process.kill();
  const second = await run.start();
  const restored = await run.control.restore("x1", { id: "c1", cut }, { rollout: "r1", from: 0, to: 1 });
  expect(restored).toMatchObject({ digest: answer.digest, installed: [{ rollout: "r1", attempt: 1 }] });
  expect(await ask(second.url, { attempt: 0, turn: 2 })).toMatchObject({ code: "stale_attempt" });
  expect(await ask(second.url, { attempt: 1, turn: 2 })).toMatchObject({ status: 200 });
});

test("weights that the trainer published are found by a process that comes later", async () => {
  const connection = await broker.connectAs("trainer");
  const digest = await openBlobs(connection, run.run, sha256).put(JSON.stringify([0, 1]));
  const subject = logSubject(run.run, { role: "trainer", instance: "main", worker: "0" });
  const published = encodeEvents("t", [{ type: "policy.published", data: { version: 1, digest } }]);
  const draft = { ...published, subject, messageId: "t-1", expected: { subject, sequence: 0 } };
  await openLog(connection, run.run).append(draft);
  const { url } = await run.start();
  // of another length than the policy's: nothing is made up for what is missing
  const reply = await ask(url, { turn: 0 }, bodyOf(0, { model: "softmax@1" }));
  expect(reply).toMatchObject({ status: 409, code: "invalid_checkpoint_state" });
});

test("[F10] neither a caller's credentials nor the broker's are in the stream or in what the process prints", async () => {
  const { url, process } = await run.start();
  const secret = "sk-do-not-write-this-down";
  await post(url, bodyOf(0), { ...headersOf({ turn: 0 }), authorization: `Bearer ${secret}` });
  await post(url, "{", { ...headersOf({ turn: 1 }), authorization: `Bearer ${secret}` });
  expect(await process.kill("SIGTERM")).toBe(0);
  const written = [process.output];
  await run.log.read(
    { upTo: await run.log.lastSequence() },
    ({ body }) => void written.push(new TextDecoder().decode(body)),
  );
  const { NATS_PASSWORD: password } = run.environmentOf("model");
  for (const hidden of [secret, password]) expect(written.join("\n")).not.toContain(hidden);
});

test.each([
  [{ HOLDPOINT_MODEL_PORT: "70000" }, "HOLDPOINT_MODEL_PORT"],
  [{ HOLDPOINT_SCRIPT_FILE: "/nowhere/script.json" }, "HOLDPOINT_SCRIPT_FILE"],
])("with the wrong setting %j it does not start, and names it", async (wrong, name) => {
  const process = run.spawn(...run.commandWith(wrong));
  expect(await process.ended()).toBe(2);
  expect(process.output).toContain(name);
});
