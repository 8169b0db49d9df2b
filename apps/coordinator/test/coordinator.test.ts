import { digest, type SimulatedSession } from "@holdpoint/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CoordinatorProcess, eventually, LiveRun } from "./live-run.ts";

const sessions: readonly SimulatedSession[] = ["r1", "r2"].map((rollout) => {
  const edge = { received: 1, last: digest(rollout) };
  return { rollout, attempt: 0, edges: { calls: edge, tools: edge } };
});
const deadline = { timeoutMs: 60_000 };

let live: LiveRun;

beforeAll(async () => {
  live = await LiveRun.start("live");
});

afterAll(async () => {
  await live.stop();
});

describe("a coordinator on a real broker", () => {
  test("takes a checkpoint on request, and answers with its outcome", async () => {
    await live.coordinator();
    for (const role of ["environment", "model", "agent", "resources"] as const) await live.join(role, sessions);
    const outcome = await live.request("checkpoint", { checkpointId: "c1", ...deadline });
    expect(outcome).toMatchObject({ ok: true, operation: "checkpoint", result: { phase: "idle", checkpointId: "c1" } });
    expect(await live.outcome(outcome.command)).toEqual(outcome);
  });

  test("[F8] shows what the server promises about the stream", async () => {
    const status = await live.request("status", {});
    expect(status).toMatchObject({
      ok: true,
      result: { promise: { syncAlways: true, replicas: 1 }, restorable: ["c1"] },
    });
    expect(status.result?.warnings).toEqual([]);
  });

  test("obeys what was published and forgotten, in order", async () => {
    const silent = live.participants.map((participant) => participant.behaviour);
    for (const behaviour of silent) behaviour.prepare = () => undefined; // the prepare is not over before the commit is decided
    const prepare = await live.command("prepare", { checkpointId: "c2", ...deadline });
    const commit = await live.command("commit", { checkpointId: "c2", ...deadline });
    expect(await live.outcome(commit)).toMatchObject({ ok: false, problem: { code: "invalid_phase" } });
    for (const behaviour of silent) delete behaviour.prepare;
    expect(await live.request("status", {})).toMatchObject({ ok: true }); // a word on control, at which they look again
    expect(await live.outcome(prepare)).toMatchObject({ ok: true });
    const again = await live.request("commit", { checkpointId: "c2", ...deadline });
    expect(again).toMatchObject({ ok: true, result: { phase: "committed" } });
    expect(await live.request("resume", { checkpointId: "c2", ...deadline })).toMatchObject({ ok: true });
  });

  test("refuses what is malformed by name, and handles the next as if nothing had been", async () => {
    const sent = [
      await live.publish("prepare", "{"),
      await live.publish("prepare", JSON.stringify({ checkpointId: "c3" })),
      await live.publish("explode", "{}"),
      await live.publish("status.now", "{}"),
    ];
    for (const command of sent) {
      expect(await live.outcome(command)).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
    }
    expect(await live.request("status", {})).toMatchObject({ ok: true });
  });

  test("[A11] restores a checkpoint twice, each time under attempts that the log has never seen", async () => {
    for (const [checkpointId, attempt] of [
      ["x1", 1],
      ["x2", 2],
    ] as const) {
      const outcome = await live.request("restore", { checkpointId, source: "c1", ...deadline });
      expect(outcome).toMatchObject({ ok: true, result: { phase: "restored" } });
      const retired = { rollouts: sessions.map(({ rollout }) => ({ rollout, attempt })), ...deadline };
      expect(outcome.result?.receipt?.[0]?.continued).toEqual(retired.rollouts);
      expect(await live.request("resume", { checkpointId, ...deadline })).toMatchObject({ ok: true });
      expect(await live.request("retire", retired)).toMatchObject({ ok: true });
    }
  });
});

describe("[L11] one coordinator decides", () => {
  test("one that starts while another leads stands by, and leads when that one stops", async () => {
    const first = await live.leader();
    const second = await live.standby();
    expect(await first.kill("SIGTERM")).toBe(0);
    expect(first.output).toContain("coordinator stopped");
    await second.says("coordinator leads");
    expect(await live.request("status", {})).toMatchObject({ ok: true });
    expect(await second.kill("SIGTERM")).toBe(0);
    expect((await live.control()).at(-1)?.type).toBe("coordinator.stopped");
  });

  test("killed in the middle of a checkpoint, its successor ends it as if nothing had been", async () => {
    const steps = ["checkpoint.opened", "checkpoint.captured", "checkpoint.proceeded", "checkpoint.committed"] as const;
    for (const step of steps) {
      const checkpointId = `kill-${step.split(".")[1]}`;
      const victim = await live.coordinator();
      const command = await live.command("checkpoint", { checkpointId, ...deadline });
      await eventually(step, async () => {
        const isThere = (await live.control()).some(({ type, data }) => {
          return type === step && "checkpointId" in data && data.checkpointId === checkpointId;
        });
        return isThere ? true : undefined;
      });
      expect(await victim.kill()).toBe("SIGKILL");
      const successor = await live.coordinator();
      expect(await live.outcome(command)).toMatchObject({ ok: true, result: { checkpointId, phase: "idle" } });
      await successor.kill();
    }
  });

  test("[A1] an id that was resumed is stale after every process was killed", async () => {
    await live.broker.kill();
    await live.broker.restart();
    await live.coordinator();
    for (const checkpointId of ["c1", "c2", "kill-captured"]) {
      const outcome = await live.request("prepare", { checkpointId, ...deadline });
      expect(outcome).toMatchObject({ ok: false, problem: { code: "stale_checkpoint" } });
    }
  });

  test("goes on by itself over a restart of the broker", async () => {
    await live.broker.kill();
    await live.broker.restart();
    const command = await live.command("checkpoint", { checkpointId: "after", ...deadline });
    expect(await live.outcome(command)).toMatchObject({ ok: true });
  });
});

test("wrong settings end it with code 2, all of them named", async () => {
  const wrong = new CoordinatorProcess({
    PATH: process.env["PATH"] ?? "",
    HOLDPOINT_RUN: "a.b",
    LOG_LEVEL: "loud",
    HOLDPOINT_MONITOR_URL: "ftp://x",
    HOLDPOINT_ALLOW_WEAK: "maybe",
  });
  expect(await wrong.ended()).toBe(2);
  for (const name of ["HOLDPOINT_RUN", "LOG_LEVEL", "HOLDPOINT_MONITOR_URL", "HOLDPOINT_ALLOW_WEAK"]) {
    expect(wrong.output).toContain(name);
  }
});
