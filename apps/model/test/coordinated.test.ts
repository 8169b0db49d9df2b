/** Checkpoints and a restore by the real coordinator, with the model server as a process and simulated callers. */
import { type Operation, Outcome, type Role, serviceSubject } from "@holdpoint/schemas";
import { digest, joinRun, type SimulatedProcess, startTestBroker, type TestBroker } from "@holdpoint/testing";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask } from "./caller.ts";
import { ModelRun } from "./process.ts";

const coordinatorProgram = fileURLToPath(new URL("../../coordinator/src/main.ts", import.meta.url));
const original = { rollout: "r1", attempt: 0 };
const replacement = { rollout: "r1", attempt: 1 };

let broker: TestBroker;
let run: ModelRun;
let agent: SimulatedProcess;
let url = "";
const tails: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  broker = await startTestBroker();
  run = await ModelRun.open(broker);
  await run.spawn(coordinatorProgram, run.environmentOf("coordinator")).says(/coordinator leads/);
  ({ url } = await run.start());
  const environment = await join("environment");
  environment.sessions = [original];
  agent = await join("agent");
});
afterAll(async () => {
  for (const tail of tails) await tail.stop();
  await run.stop();
  await broker.stop();
});

/** A participant that obeys its gate over the broker. */
async function join(role: Role): Promise<SimulatedProcess> {
  const named = { role, instance: "main", worker: "0", mode: "exported" as const };
  const joined = await joinRun(await broker.connectAs(role), run.run, named);
  tails.push(joined);
  return joined.process;
}

/** A command as a request to the coordinator. */
async function command(operation: Operation, body: object): Promise<Outcome> {
  const operator = await broker.connectAs("operator");
  const text = JSON.stringify({ timeoutMs: 60_000, ...body });
  const bytes = await operator.request(serviceSubject(run.run, operation), text, { timeoutMs: 60_000 });
  return Outcome.parse(JSON.parse(new TextDecoder().decode(bytes)));
}

/** The agent says that it has these responses. */
function agentHas(...responses: readonly string[]): void {
  const calls = { received: responses.length, last: digest(responses.at(-1) ?? "") };
  agent.sessions = [{ ...original, edges: { calls } }];
}

test("[L5] a checkpoint stands where the agent and the model say the same of the calls, and fails where they do not", async () => {
  const { message: first } = await ask(url, { turn: 0 });
  agentHas();
  const torn = await command("checkpoint", { checkpointId: "c0" });
  expect(torn).toMatchObject({ ok: false });
  expect(JSON.stringify(torn)).toContain("the agent has received 0 model calls, the other end has delivered 1");
  await command("resume", { checkpointId: "c0" });
  agentHas(first);
  expect(await command("checkpoint", { checkpointId: "c1" })).toMatchObject({ ok: true });
});

test("[C15] a checkpoint stands where the agent asked again for a response that it does not have", async () => {
  const { message: first } = await ask(url, { turn: 0 });
  const second = await ask(url, { turn: 1 });
  agentHas(first); // the second was lost on its way
  expect(await command("prepare", { checkpointId: "c2" })).toMatchObject({ ok: true });
  expect(await ask(url, { turn: 1 })).toMatchObject({ code: "admission_closed" });
  expect(await command("commit", { checkpointId: "c2" })).toMatchObject({ ok: true });
  await command("resume", { checkpointId: "c2" });
  expect((await ask(url, { turn: 1 })).text).toBe(second.text);
});

test("[A8][A11] what it restores goes on in a process that comes after a crash, from the same checkpoint twice", async () => {
  const [third] = [await ask(url, { turn: 2 })];
  await run.processes.at(-1)?.kill();
  ({ url } = await run.start());
  for (const attempt of [1, 2]) {
    await command("retire", { rollouts: [{ rollout: "r1", attempt: attempt - 1 }] });
    const restored = await command("restore", { checkpointId: `x${attempt}`, source: "c2" });
    expect(restored).toMatchObject({ ok: true, result: { phase: "restored" } });
    const receipt = restored.result?.receipt?.find(({ role }) => role === "model");
    expect(receipt).toMatchObject({ continued: [{ ...replacement, attempt }], restarted: [], leftOut: [] });
    expect(receipt?.found).toBe(receipt?.expected);
    await command("resume", { checkpointId: `x${attempt}` });
    expect(await ask(url, { attempt: attempt - 1, turn: 2 })).toMatchObject({ code: "stale_attempt" });
    await ask(url, { attempt, turn: 1 });
    expect((await ask(url, { attempt, turn: 2 })).text).toBe(third.text);
  }
});
