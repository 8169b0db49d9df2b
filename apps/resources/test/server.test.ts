import { HoldpointError } from "@holdpoint/errors";
import { breakSource, type Task } from "@holdpoint/repair";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { installedPackage, shippedSource } from "../src/installed-package.ts";
import { patience } from "./processes.ts";
import { Run, someTask, waitingFor } from "./run.ts";

const episode = { rollout: "r", attempt: 0 };

/** The edit that undoes what the task broke. */
async function mending(task: Task): Promise<{ path: string; line: number; old: string; new: string }> {
  const source = await shippedSource(installedPackage(task.package), task);
  const lineOf = (text: string) => text.split("\n")[task.site.line - 1] ?? "";
  return { path: task.file, line: task.site.line, old: lineOf(breakSource(task, source)), new: lineOf(source) };
}

async function seeded(name?: string): Promise<{ run: Run; task: Task }> {
  const run = await Run.open();
  const task = someTask(name);
  await run.serve();
  await run.seed(episode, task);
  return { run, task };
}

describe("an episode", () => {
  test("is lent a broken package, repairs it with the tools, and is judged by the shipped tests", async () => {
    const { run, task } = await seeded("minimist");
    expect(await run.tool(episode, "0/0", "run_tests")).toMatch(/^\d+ of 153 tests passed/);
    const edit = await mending(task);
    expect(await run.tool(episode, "1/0", "edit_file", edit)).toBe(`edited line ${edit.line}\n`);
    expect(await run.tool(episode, "2/0", "run_tests")).toBe("All 153 tests passed.\n");
    expect(await run.verify(episode)).toMatchObject({ reward: 1, passed: 153, failed: 0, planned: 153 });
    await run.rpc(episode, "close");
    expect(run.sandboxes()).toEqual([]);
    expect(run.snapshots()).toEqual([]);
    expect(run.troubles).toEqual([]);
  });

  test("says in the reply to its seed that verify may be done again and that a sandbox was lent", async () => {
    const run = await Run.open();
    await run.serve();
    expect(await run.seed(episode, someTask())).toEqual({
      terms: { verify: "replay", sandboxLent: true, rebinds: false, grantsBound: false },
      restart: null,
    });
  });

  test("that left the package broken gets at most half, and the same files the same digest", async () => {
    const { run, task } = await seeded();
    const other = { rollout: "other", attempt: 0 };
    await run.seed(other, task);
    const verdict = await run.verify(episode);
    expect(verdict["reward"]).toBeLessThanOrEqual(0.5);
    expect(await run.verify(other)).toEqual(verdict);
    await run.seed({ rollout: "third", attempt: 0 }, someTask("text-table", 2));
    expect((await run.verify({ rollout: "third", attempt: 0 }))["treeDigest"]).not.toBe(verdict["treeDigest"]);
  });

  test("gains nothing by what it does to the tests, the manifest, or beside the shipped files", async () => {
    const { run } = await seeded();
    const honest = await run.verify(episode);
    const cheat = { rollout: "cheat", attempt: 0 };
    await run.seed(cheat, someTask());
    const folder = await run.sandboxOf(cheat);
    for (const name of ["align", "center", "dotalign", "doubledot", "table"]) {
      writeFileSync(
        join(folder, "test", `${name}.js`),
        "require('tape')('fine', (t) => { t.plan(1); t.ok(true); });\n",
      );
    }
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, "test", "node_modules"), "");
    expect(await run.verify(cheat)).toMatchObject({ reward: honest["reward"], passed: honest["passed"] });
  });
});

describe("a tool call", () => {
  test("[L3] asked again is answered from the log, the latest and any before it", async () => {
    const { run, task } = await seeded();
    const first = await run.tool(episode, "0/0", "run_tests");
    const second = await run.tool(episode, "0/1", "read_file", { path: task.file });
    await run.tool(episode, "1/0", "list_files");
    expect(await run.tool(episode, "0/0", "run_tests")).toBe(first);
    expect(await run.tool(episode, "0/1", "read_file", { path: task.file })).toBe(second);
    expect(run.executions().filter((line) => line.startsWith("run_tests"))).toEqual([
      "run_tests 0/0 begin",
      "run_tests 0/0 end",
    ]);
    expect(await run.eventsOf("tool.finished")).toHaveLength(3);
  });

  test("[L3] asked twice at the same time is executed once", async () => {
    const { run } = await seeded();
    const answers = await Promise.all([1, 2, 3].map(() => run.tool(episode, "0/0", "run_tests")));
    expect(new Set(answers).size).toBe(1);
    expect(run.executions()).toEqual(["run_tests 0/0 begin", "run_tests 0/0 end"]);
  });

  test("[L3] of a name that was another call is refused", async () => {
    const { run } = await seeded();
    await run.tool(episode, "0/0", "read_file", { path: "index.js" });
    await expect(run.tool(episode, "0/0", "read_file", { path: "LICENSE" })).rejects.toMatchObject({
      code: "session_conflict",
    });
    await expect(run.tool(episode, "0/0", "list_files")).rejects.toMatchObject({ code: "session_conflict" });
  });

  test("[L2] is in the log as started, with a snapshot if it may change anything, before it is executed", async () => {
    const { run } = await seeded();
    await run.tool(episode, "0/0", "list_files");
    await run.tool(episode, "0/1", "run_tests");
    const [list, tests] = await run.eventsOf("tool.started");
    expect(list).toMatchObject({ name: "list_files", snapshot: null });
    const [before] = await run.eventsOf("snapshot.taken");
    expect(before).toMatchObject({ snapshot: tests?.["snapshot"], checkpointId: null, provider: "dir" });
    const types = (await run.events()).map(({ type }) => type);
    expect(types.slice(types.indexOf("tool.started"))).toEqual([
      "tool.started",
      "tool.finished",
      "snapshot.taken",
      "tool.started",
      "tool.finished",
    ]);
  });

  test("leaves no snapshot behind once it has finished", async () => {
    const { run } = await seeded();
    await run.tool(episode, "0/0", "run_tests");
    await vi.waitFor(() => expect(run.snapshots()).toEqual([]), patience);
  });

  test("with arguments that make no sense is answered in words for the model", async () => {
    const { run } = await seeded();
    expect(await run.tool(episode, "0/0", "read_file", { file: "index.js" })).toMatch(/^error: wrong arguments/);
    expect(await run.tool(episode, "0/1", "fly")).toMatch(/^error: there is no tool fly/);
  });

  test("[S7] of an episode that is a restart elsewhere is neither held nor waited for while a checkpoint is open", async () => {
    const { run, task } = await seeded();
    const other = { rollout: "other", attempt: 0 };
    await run.seed(other, task);
    const busy = join(run.stateDir, "busy");
    writeFileSync(busy, "");
    writeFileSync(join(await run.sandboxOf(episode), "index.js"), waitingFor(busy));
    const call = (turn: number, name: string) =>
      run.rpc(episode, "tool", { turn, index: 0, name, arguments: "{}", restart: true });
    const first = call(0, "run_tests");
    await vi.waitFor(() => expect(run.executions()).toEqual(["run_tests 0/0 begin"]), patience);
    expect(await run.asked("prepare", { checkpointId: "c1" })).toMatchObject({ blockerCount: 0 });
    rmSync(busy);
    await first;
    const held = run.tool(other, "0/0", "list_files");
    expect(await call(1, "list_files")).toMatchObject({ result: { text: expect.stringContaining("index.js") } });
    expect(await run.eventsOf("tool.finished")).toMatchObject([{ rollout: "r" }, { rollout: "r" }]);
    await run.resume("c1");
    expect(await held).toContain("index.js");
  });

  test("without a session is refused", async () => {
    const { run } = await seeded();
    const nobody = { rollout: "nobody", attempt: 0 };
    await expect(run.tool(nobody, "0/0", "list_files")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("a verify", () => {
  test("[S20] is done once: asked again it answers the same", async () => {
    const { run, task } = await seeded();
    const [one, other] = await Promise.all([run.verify(episode), run.verify(episode)]);
    await run.tool(episode, "0/0", "edit_file", await mending(task));
    expect(await run.verify(episode)).toEqual(one);
    expect(other).toEqual(one);
    expect(run.executions().filter((line) => line.startsWith("verify"))).toEqual([
      "verify null/null begin",
      "verify null/null end",
    ]);
    expect(await run.eventsOf("verify.finished")).toHaveLength(1);
  });

  test("leaves the agent's sandbox as it was, and nothing of its own", async () => {
    const { run } = await seeded();
    const before = run.sandboxes();
    await run.verify(episode);
    expect(run.sandboxes()).toEqual(before);
    expect(run.snapshots()).toEqual([]);
  });
});

describe("a seed", () => {
  test("[S18] that is repeated runs no setup and keeps what was done; another one is refused", async () => {
    const { run, task } = await seeded();
    const edit = await mending(task);
    await run.tool(episode, "0/0", "edit_file", edit);
    const sandboxes = run.sandboxes();
    await run.seed(episode, task);
    expect(run.sandboxes()).toEqual(sandboxes);
    expect(await run.eventsOf("session.seeded")).toHaveLength(1);
    expect(await run.tool(episode, "1/0", "read_file", { path: task.file })).toContain(edit.new);
    await expect(run.seed(episode, someTask("text-table", 2))).rejects.toMatchObject({ code: "session_conflict" });
    await expect(run.seed(episode, task, { sessionId: "another" })).rejects.toMatchObject({ code: "session_conflict" });
  });

  test("[C1] that overlaps another of the same session waits for it, and sets up once", async () => {
    const run = await Run.open();
    await run.serve();
    await Promise.all([1, 2, 3].map(() => run.seed(episode, someTask())));
    expect(run.sandboxes()).toHaveLength(1);
    expect(await run.eventsOf("session.seeded")).toHaveLength(1);
  });

  test("[A15] that fails leaves nothing, and the next one goes through", async () => {
    const run = await Run.open();
    await run.serve();
    const task = someTask();
    const noPackage = run.seed(episode, { ...task, package: "left-pad" });
    await expect(noPackage).rejects.toMatchObject({ code: "invalid_request" });
    await expect(run.seed(episode, { ...task, version: "9.9.9" })).rejects.toMatchObject({ code: "not_found" });
    await expect(run.rpc(episode, "seed", { ...episode, sessionId: "s", seed: {} })).rejects.toMatchObject({
      code: "invalid_request",
    });
    expect(run.sandboxes()).toEqual([]);
    await run.seed(episode, task);
    expect(run.sandboxes()).toHaveLength(1);
  });

  test("[A12] of a later attempt is refused while an earlier one is live, and goes through once that is retired", async () => {
    const { run, task } = await seeded();
    const later = { rollout: "r", attempt: 1 };
    await expect(run.seed(later, task)).rejects.toMatchObject({ code: "session_conflict" });
    await run.retire(episode);
    expect(run.sandboxes()).toEqual([]);
    await run.seed(later, task);
    expect(run.sandboxes()).toHaveLength(1);
    await expect(run.seed(episode, task)).rejects.toMatchObject({ code: "stale_attempt" });
  });
});

describe("the end of a session", () => {
  test("[C8] frees it once; the second time there is no session", async () => {
    const { run } = await seeded();
    await run.rpc(episode, "close");
    expect(run.sandboxes()).toEqual([]);
    await expect(run.rpc(episode, "close")).rejects.toMatchObject({ code: "not_found" });
    await expect(run.tool(episode, "0/0", "list_files")).rejects.toMatchObject({ code: "not_found" });
    expect(await run.eventsOf("session.closed")).toHaveLength(1);
  });

  test("[C8] by a close reaches it also while it is being seeded, and leaves no sandbox", async () => {
    const { run, task } = await seeded();
    const other = { rollout: "other", attempt: 0 };
    const seeding = run.seed(other, task).catch(() => {});
    await run.rpc(other, "close");
    await seeding;
    expect(run.sandboxes()).toHaveLength(1);
    await expect(run.rpc(other, "close")).rejects.toMatchObject({ code: "not_found" });
  });

  test("[C8] by retirement stops what runs, waits for it, and frees it; whoever waited is told", async () => {
    const { run } = await seeded();
    writeFileSync(join(await run.sandboxOf(episode), "index.js"), "setInterval(() => {}, 1000);\n");
    const running = run.tool(episode, "0/0", "run_tests").catch((error: unknown) => error);
    await vi.waitFor(() => expect(run.executions()).toEqual(["run_tests 0/0 begin"]), patience);
    await run.retire(episode);
    expect(await running).toMatchObject({ code: "stale_attempt" });
    expect(run.sandboxes()).toEqual([]);
    expect(run.snapshots()).toEqual([]);
    expect(await run.eventsOf("session.retired")).toEqual([episode]);
    await expect(run.rpc(episode, "close")).rejects.toMatchObject({ code: "stale_attempt" });
    expect(run.troubles).toEqual([]);
  });

  test("[C8] by retirement ends a verify too, and waits until nothing of it is left", async () => {
    const { run } = await seeded();
    const gate = join(run.stateDir, "gate");
    writeFileSync(gate, "");
    const trace = join(run.stateDir, "trace");
    const source = `require("fs").writeFileSync(${JSON.stringify(trace)}, "");\n${waitingFor(gate)}`;
    writeFileSync(join(await run.sandboxOf(episode), "index.js"), source);
    const judged = run.verify(episode).catch((error: unknown) => error);
    await vi.waitFor(() => expect(existsSync(trace)).toBe(true), patience);
    await run.retire(episode);
    expect(run.sandboxes()).toEqual([]);
    expect(await judged).toMatchObject({ code: "stale_attempt" });
  });

  test("[C2] during its seed leaves nothing, and the seed is told", async () => {
    const run = await Run.open();
    await run.serve();
    const episodes = [1, 2, 3, 4, 5].map((number) => ({ rollout: `r${number}`, attempt: 0 }));
    const seeds = episodes.map((each) => run.seed(each, someTask()).catch((error: unknown) => error));
    await run.retire(...episodes);
    const errors = (await Promise.all(seeds)).filter((outcome) => outcome instanceof Error);
    expect(errors.filter((error) => !HoldpointError.is(error, "stale_attempt"))).toEqual([]);
    expect(run.sandboxes()).toEqual([]);
  });
});
