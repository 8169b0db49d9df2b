import { readSettings } from "@holdpoint/participant";
import { logSubject } from "@holdpoint/schemas";
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { patience, type ServerProcess, startProcess } from "./processes.ts";
import { Run, someTask, waitingFor } from "./run.ts";
import { Settings } from "../src/settings.ts";
import { scratchFolder } from "./scratch.ts";

const episode = { rollout: "r", attempt: 0 };

async function killed({ child, exited }: ServerProcess): Promise<void> {
  child.kill("SIGKILL");
  await exited;
}

describe("a process that is killed", () => {
  test("[L3] in the middle of a call: its successor rolls the call back, executes it anew, and answers for ever after", async () => {
    const run = await Run.open();
    const first = await run.spawn();
    await run.seed(episode, someTask());
    const before = await run.sandboxOf(episode);
    const gate = join(run.stateDir, "gate");
    writeFileSync(gate, "");
    appendFileSync(
      join(before, "index.js"),
      `require("fs").appendFileSync(${JSON.stringify("trace")}, "x");\n${waitingFor(gate)}`,
    );
    const lost = run.tool(episode, "0/0", "run_tests").catch(() => "lost");
    await vi.waitFor(() => expect(readFileSync(join(before, "trace"), "utf8")).toBe("x"), patience);
    await killed(first);
    rmSync(gate);

    await run.spawn();
    const answers = await Promise.all([1, 2].map(() => run.tool(episode, "0/0", "run_tests")));
    expect(new Set(answers).size).toBe(1);
    expect(run.executions()).toEqual(["run_tests 0/0 begin", "run_tests 0/0 begin", "run_tests 0/0 end"]);
    const after = await run.sandboxOf(episode);
    expect(after).not.toBe(before);
    expect(readFileSync(join(after, "trace"), "utf8")).toBe("x"); // of the second execution alone
    expect(existsSync(before)).toBe(false);
    expect(await run.eventsOf("tool.started")).toHaveLength(2);
    expect(await run.eventsOf("tool.finished")).toHaveLength(1);
    expect(await run.tool(episode, "0/0", "run_tests")).toBe(answers[0]);
    void lost;
  });

  test("[L3] before anybody asks again is as if the call had never started: a checkpoint holds what was before it", async () => {
    const run = await Run.open();
    const first = await run.spawn();
    await run.seed(episode, someTask());
    const gate = join(run.stateDir, "gate");
    writeFileSync(gate, "");
    appendFileSync(
      join(await run.sandboxOf(episode), "index.js"),
      `require("fs").writeFileSync("trace", "x");\n${waitingFor(gate)}`,
    );
    const lost = run.tool(episode, "0/0", "run_tests").catch(() => "lost");
    const trace = join(await run.sandboxOf(episode), "trace");
    await vi.waitFor(() => expect(existsSync(trace)).toBe(true), patience);
    await killed(first);
    await run.spawn();
    const { answer } = await run.capture("c1", [episode]);
    expect(answer).toMatchObject({ sessions: 1 });
    const [snapshot] = (await run.eventsOf("snapshot.taken")).filter(({ checkpointId }) => checkpointId === "c1");
    expect(existsSync(join(run.stateDir, "snapshots", String(snapshot?.["snapshot"]), "tree", "trace"))).toBe(false);
    void lost;
  });

  test("[L9] between its calls is followed by one that goes on: results, verdicts and sandboxes are as before", async () => {
    const run = await Run.open();
    const first = await run.spawn();
    await run.seed(episode, someTask());
    const result = await run.tool(episode, "0/0", "run_tests");
    const verdict = await run.verify(episode);
    const sandbox = await run.sandboxOf(episode);
    await killed(first);
    await run.spawn();
    expect(await run.tool(episode, "0/0", "run_tests")).toBe(result);
    expect(await run.verify(episode)).toEqual(verdict);
    expect(await run.sandboxOf(episode)).toBe(sandbox);
    expect(run.executionLines()).toHaveLength(4);
  });

  test("[L4] after the capture is followed by one that commits it, and whose sessions wait until they are let go on", async () => {
    const run = await Run.open();
    const first = await run.spawn();
    await run.seed(episode, someTask());
    const { cut } = await run.capture("c1", [episode]);
    await killed(first);
    await run.spawn();
    const held = run.tool(episode, "0/0", "run_tests");
    expect((await run.asked("commit", { checkpointId: "c1" })).problem).toBeUndefined();
    expect(run.executions()).toEqual([]);
    await run.resume("c1");
    expect(await held).toMatch(/tests passed/);
    await run.retire(episode);
    expect(await run.restore("restore-1", "c1", cut, [episode])).toMatchObject({ sessions: 1 });
  });

  test.each(["installed", "failed"] as const)(
    "[L9] during a restore is followed by one that keeps the forks until that has %s, and then what it needs of them",
    async (end) => {
      const run = await Run.open();
      const first = await run.spawn();
      await run.seed(episode, someTask());
      const cut = await run.checkpoint("c1", [episode]);
      await run.retire(episode);
      const order = { source: "c1", cut: { [run.log.stream]: cut }, assignments: [{ rollout: "r", from: 0, to: 1 }] };
      const { data } = await run.beginRestore("x1", order);
      const forks = run.sandboxes();
      expect(forks).toHaveLength(1);
      await killed(first);
      mkdirSync(join(run.stateDir, "sandboxes", "box-nobody"));
      await run.spawn();
      await vi.waitFor(() => expect(run.sandboxes()).toEqual(forks), patience);
      const problem = { code: "unavailable" as const, message: "the model is away" };
      if (end === "installed") await run.control({ type: "restore.installed", data: { ...data, receipt: [] } });
      else await run.control({ type: "restore.failed", data: { ...data, problem } });
      await run.resume("x1");
      const next = { rollout: "r", attempt: 1 };
      const kept = end === "installed" ? forks : [];
      await vi.waitFor(() => expect(run.sandboxes()).toEqual(kept), patience);
      await run.seed(next, someTask());
      expect(await run.tool(next, "0/0", "list_files")).toContain("index.js");
      expect(run.sandboxes()).toHaveLength(1);
    },
  );

  test("leaves sandboxes and snapshots that nobody names: its successor says so in the log, and frees them alone", async () => {
    const run = await Run.open();
    const first = await run.spawn();
    await run.seed(episode, someTask());
    await run.checkpoint("c1", [episode]);
    const kept = { sandboxes: run.sandboxes(), snapshots: run.snapshots() };
    await killed(first);
    mkdirSync(join(run.stateDir, "sandboxes", "box-nobody"));
    const [snapshot = ""] = kept.snapshots;
    const orphan = join(run.stateDir, "snapshots", "cut-nobody");
    cpSync(join(run.stateDir, "snapshots", snapshot), orphan, { recursive: true });
    await run.spawn();
    await vi.waitFor(() => expect(run.sandboxes()).toEqual(kept.sandboxes), patience);
    await vi.waitFor(() => expect(run.snapshots()).toEqual(kept.snapshots), patience);
    expect(await run.eventsOf("sandbox.deleted")).toEqual([{ sandbox: "box-nobody" }]);
    expect(await run.eventsOf("snapshot.deleted")).toEqual([{ snapshot: "cut-nobody" }]);
  });

  test("[L9] and whose sandbox is gone: the session is marked as a restart, and the rest goes on", async () => {
    const run = await Run.open();
    const other = { rollout: "other", attempt: 0 };
    const first = await run.spawn();
    await run.seed(episode, someTask());
    await run.seed(other, someTask());
    const sandbox = await run.sandboxOf(episode);
    await killed(first);
    rmSync(sandbox, { recursive: true });
    await run.spawn();
    expect(await run.asked("prepare", { checkpointId: "c1" })).toMatchObject({
      blockerCount: 0,
      restarts: [episode],
      continued: [other],
    });
    await run.resume("c1");
    const [mark] = await run.eventsOf("session.restart_marked");
    expect(mark).toMatchObject({ ...episode, why: expect.stringContaining("is gone") });
    await expect(run.tool(episode, "0/0", "list_files")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(await run.tool(other, "0/0", "list_files")).toContain("index.js");
    expect(await run.seed(episode, someTask())).toMatchObject({ restart: expect.stringContaining("is gone") });
    await run.rpc(episode, "close");
  });
});

describe("the start", () => {
  test.each([
    ["is relative", { HOLDPOINT_STATE_DIR: "state" }],
    ["is not given", {}],
    ["is empty", { HOLDPOINT_STATE_DIR: "" }],
  ])("[S19] is refused where the state folder %s", (_, env) => {
    expect(() => readSettings(Settings, env)).toThrow(/absolute path[^]*HOLDPOINT_STATE_DIR/);
  });

  test("[S19] with settings that cannot be used ends with exit code 2, and says why", async () => {
    const server = startProcess({ HOLDPOINT_STATE_DIR: "state" });
    expect(await server.exited).toBe(2);
    expect(server.output()).toContain("HOLDPOINT_STATE_DIR");
  });

  test("[S19] is refused with exit code 2 in the state folder of another run, or of another server", async () => {
    const run = await Run.open();
    const { child, exited } = await run.spawn();
    child.kill("SIGTERM");
    expect(await exited).toBe(0);
    const env = { HOLDPOINT_STATE_DIR: run.stateDir };
    expect(await startProcess({ ...env, HOLDPOINT_RUN: "another" }).exited).toBe(2);
    const neighbour = startProcess({ ...env, HOLDPOINT_RUN: run.name, HOLDPOINT_INSTANCE: "second" });
    expect(await neighbour.exited).toBe(2);
    expect(neighbour.output()).toContain("give each its own folder");
    const place = { role: "resources", instance: "second", worker: "0" } as const;
    expect(await run.log.lastOn(logSubject(run.name, place))).toBeUndefined(); // it fenced nobody
  });

  test("[L1] of a second process for the same place ends the first with exit code 3 at its next word", async () => {
    const run = await Run.open();
    const first = await run.spawn();
    await run.seed(episode, someTask());
    await run.spawn();
    const tried = run.seed({ rollout: "more", attempt: 0 }, someTask());
    expect(await first.exited).toBe(3);
    await tried;
    expect(await run.eventsOf("session.seeded")).toHaveLength(2);
  });
});

test("a process that is told to stop lets its call end, leaves nothing running, and ends with code 0", async () => {
  const run = await Run.open();
  const { child, exited } = await run.spawn();
  await run.seed(episode, someTask());
  const gate = join(scratchFolder(), "gate");
  writeFileSync(gate, "");
  appendFileSync(join(await run.sandboxOf(episode), "index.js"), waitingFor(gate));
  const running = run.tool(episode, "0/0", "run_tests");
  await vi.waitFor(() => expect(run.executions()).toEqual(["run_tests 0/0 begin"]), patience);
  child.kill("SIGTERM");
  rmSync(gate);
  expect(await running).toMatch(/tests passed/);
  expect(await exited).toBe(0);
  expect(await run.eventsOf("tool.finished")).toHaveLength(1);
});
