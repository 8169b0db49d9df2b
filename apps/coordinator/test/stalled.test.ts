import { parseJson } from "@holdpoint/eventsourcing";
import { commandSubject, type Operation, serviceSubject } from "@holdpoint/schemas";
import { digest, type SimulatedSession } from "@holdpoint/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { type CoordinatorProcess, eventually, LiveRun } from "./live-run.ts";

const edge = { received: 1, last: digest("r1") };
const sessions: readonly SimulatedSession[] = [{ rollout: "r1", attempt: 0, edges: { calls: edge, tools: edge } }];
const brief = { timeoutMs: 3_000 };

/** What comes back: an outcome, or the problem for which there is none. */
const Answer = z.looseObject({
  ok: z.boolean().optional(),
  code: z.string().optional(),
  message: z.string().optional(),
});
type Answer = z.infer<typeof Answer>;

let live: LiveRun;
let only: CoordinatorProcess;

beforeAll(async () => {
  live = await LiveRun.start("stalled");
  only = await live.coordinator();
  for (const role of ["environment", "model", "agent", "resources"] as const) await live.join(role, sessions);
});

afterAll(async () => {
  await live.stop();
});

async function ask(operation: Operation, body: object): Promise<Answer> {
  const operator = await live.operator();
  const subject = serviceSubject(live.run, operation);
  const json = parseJson(await operator.request(subject, JSON.stringify(body), { timeoutMs: 120_000 }));
  return Answer.parse(json.ok ? json.value : undefined);
}

/** As often as it is told to. */
async function askAgain(operation: Operation, body: object): Promise<Answer> {
  return eventually(`${operation} is obeyed`, async () => {
    const answer = await ask(operation, body);
    return answer.code === "unavailable" ? undefined : answer;
  });
}

/** How many commands of `operation` are stored; their sequences do not matter. */
async function stored(operation: Operation): Promise<number> {
  const log = await live.log();
  let count = 0;
  const subjects = [commandSubject(live.run, operation)];
  await log.read({ upTo: await log.lastSequence(), subjects }, () => void (count += 1));
  return count;
}

test("requests that waited for a coordinator that was stopped come to nothing, and asked again they are obeyed", async () => {
  only.child.kill("SIGSTOP");
  const waiting = ["w1", "w2", "w3"].map((checkpointId) => ask("prepare", { checkpointId, ...brief }));
  const status = ask("status", {});
  await (await live.operator()).roundTrip(); // they are with the broker, which has nobody else to hand them to
  await live.coordinator(); // leads once the other was silent for seconds
  only.child.kill("SIGCONT");
  for (const answer of await Promise.all([...waiting, status])) {
    expect(answer).toMatchObject({ code: "unavailable", message: expect.stringContaining("ask again") });
  }
  await only.says("another coordinator has taken over; this one stands by");
  expect([await stored("prepare"), await stored("status")]).toEqual([0, 0]);
  expect((await live.control()).map(({ type }) => type)).not.toContain("checkpoint.opened");

  const prepare = { checkpointId: "w1", timeoutMs: 60_000 };
  expect(await askAgain("prepare", prepare)).toMatchObject({ ok: true, result: { checkpointId: "w1" } });
  expect(await stored("prepare")).toBe(1);
  expect(await askAgain("resume", prepare)).toMatchObject({ ok: true });
});

test("one that was stopped answers requests again as the others do", async () => {
  const answers = await Promise.all(Array.from({ length: 40 }, () => askAgain("status", {})));
  expect(answers.filter(({ ok }) => ok === true)).toHaveLength(40);
});
