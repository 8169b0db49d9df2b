import { encodeEvents } from "@holdpoint/eventsourcing";
import { openLog, openSnapshots } from "@holdpoint/jetstream";
import { logSubject } from "@holdpoint/schemas";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CoordinatorProcess, eventually, LiveRun } from "./live-run.ts";

let live: LiveRun;

beforeAll(async () => {
  live = await LiveRun.start("restart");
});

afterAll(async () => {
  await live.stop();
});

/** What a session says that concerns no coordinator: 50 messages of 400,000 bytes at a time. */
async function sayMuch(rounds: number): Promise<void> {
  const log = openLog(await live.connect("agent"), live.run);
  const subject = logSubject(live.run, { role: "agent", instance: "loud", worker: "0" });
  const said = { type: "said", data: { text: "x".repeat(400_000) } };
  let sequence = 0;
  for (let at = 0; at < rounds * 50; at++) {
    const expected = { subject, sequence };
    const done = await log.append({ subject, messageId: `loud-${at}`, expected, ...encodeEvents("loud", [said]) });
    if (!done.stored) throw new Error("not stored");
    ({ sequence } = done);
  }
}

function foldedFrom({ output }: CoordinatorProcess): number {
  return Number(/"foldedFrom":(\d+)/.exec(output)?.[1]);
}

test("[L14] a coordinator that is started again folds what came after the snapshot, and loses nothing that was before", async () => {
  const first = await live.coordinator();
  expect(foldedFrom(first)).toBe(0);
  for (const role of ["environment", "model", "agent", "resources"] as const) await live.join(role, []);
  const checkpoint = await live.request("checkpoint", { checkpointId: "c1", timeoutMs: 60_000 });
  expect(checkpoint).toMatchObject({ ok: true });
  const pending = await live.command("prepare", { checkpointId: "c2", timeoutMs: 60_000 });
  expect(await live.outcome(pending)).toMatchObject({ ok: true });
  await sayMuch(2);
  const store = openSnapshots(await live.connect("coordinator"), live.run);
  await eventually("a snapshot", async () => {
    await live.request("status", {});
    return store.load("coordinator");
  });
  expect(await first.kill()).toBe("SIGKILL");
  const second = await live.coordinator();
  expect(foldedFrom(second)).toBeGreaterThan(checkpoint.command);
  const status = await live.request("status", {});
  expect(status).toMatchObject({ ok: true, result: { phase: "prepared", checkpointId: "c2", restorable: ["c1"] } });
  const commit = await live.request("commit", { checkpointId: "c2", timeoutMs: 60_000 });
  expect(commit).toMatchObject({ ok: true });
  expect(await second.kill("SIGTERM")).toBe(0);
});
