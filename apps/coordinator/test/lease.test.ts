/** A hold whose controller never comes back, on a real broker. */
import { digest, type SimulatedSession } from "@holdpoint/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, LiveRun } from "./live-run.ts";

const edge = { received: 1, last: digest("r1") };
const sessions: readonly SimulatedSession[] = [{ rollout: "r1", attempt: 0, edges: { calls: edge, tools: edge } }];
const deadline = { timeoutMs: 60_000 };

let live: LiveRun;

beforeAll(async () => {
  live = await LiveRun.start("leased");
  live.settings = { HOLDPOINT_LEASE_GRACE_MS: "0" };
  await live.coordinator();
  for (const role of ["environment", "model", "agent", "resources"] as const) await live.join(role, sessions);
});

afterAll(async () => {
  await live.stop();
});

/** Prepares, with a lease that is about to run out. */
async function prepared(checkpointId: string): Promise<void> {
  expect(await live.request("prepare", { checkpointId, ...deadline })).toMatchObject({ ok: true });
  await eventually("a shorter lease", async () => {
    const { ok } = await live.request("renew", { checkpointId, timeoutMs: 500 });
    return ok ? true : undefined; // its own deadline may pass before it is obeyed
  });
}

async function ended(checkpointId: string): Promise<string> {
  return eventually(`the end of ${checkpointId}`, async () => {
    const events = await live.control();
    const end = events.findLast(({ type, data }) => type === "resume.ended" && data.checkpointId === checkpointId);
    const resumed = events.find(
      ({ type, data }) => type === "checkpoint.resumed" && data.checkpointId === checkpointId,
    );
    return end !== undefined && resumed?.type === "checkpoint.resumed" ? resumed.data.reason : undefined;
  });
}

test("[C12] [F6] it ends by its lease: everybody serves again, the id is stale, the next checkpoint stands", async () => {
  await prepared("c1");
  expect(await ended("c1")).toBe("lease");
  expect(live.participants.map(({ gate }) => gate.closed)).toEqual([undefined, undefined, undefined, undefined]);
  const stale = await live.request("prepare", { checkpointId: "c1", ...deadline });
  expect(stale).toMatchObject({ ok: false, problem: { code: "stale_checkpoint" } });
  expect(await live.request("checkpoint", { checkpointId: "c2", ...deadline })).toMatchObject({ ok: true });
});

test("[C12] so it does when every coordinator was killed, as soon as there is one again", async () => {
  await prepared("c3");
  await (await live.leader()).kill();
  await live.coordinator();
  expect(await ended("c3")).toBe("lease");
  expect(live.participants.map(({ gate }) => gate.closed)).toEqual([undefined, undefined, undefined, undefined]);
});

test("renew keeps it open for as long as it is told", async () => {
  expect(await live.request("prepare", { checkpointId: "c4", ...deadline })).toMatchObject({ ok: true });
  const renewed = await live.request("renew", { checkpointId: "c4", timeoutMs: 3_600_000 });
  const status = await live.request("status", {});
  expect(renewed).toMatchObject({ ok: true, result: { phase: "prepared", checkpointId: "c4" } });
  expect(status.result?.leaseUntilMs).toBeGreaterThan(Date.now() + 3_000_000);
  expect(await live.request("resume", { checkpointId: "c4", ...deadline })).toMatchObject({ ok: true });
});
