import type { Task } from "@holdpoint/repair";
import type { Episode } from "@holdpoint/schemas";
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { patience } from "./processes.ts";
import { Run, type Server, someTask, waitingFor } from "./run.ts";

const episode = { rollout: "r", attempt: 0 };
const other = { rollout: "other", attempt: 0 };
const next = { rollout: "r", attempt: 1 };
const notice = { path: "index.js", line: 1, old: "module.exports = function (rows_, opts) {" };

async function seeded(...episodes: readonly Episode[]): Promise<{ run: Run; task: Task; server: Server }> {
  const run = await Run.open();
  const task = someTask();
  const server = await run.serve();
  for (const each of episodes) await run.seed(each, task);
  return { run, task, server };
}

function edit(run: Run, of: Episode, call: `${number}/${number}`, text: string): Promise<string> {
  return run.tool(of, call, "edit_file", { ...notice, new: `${notice.old} // ${text}` });
}

describe("a checkpoint", () => {
  test("takes a snapshot of every sandbox, named in the log with its checkpoint, and makes it durable at the commit", async () => {
    const { run } = await seeded(episode, other);
    const { answer } = await run.capture("c1", [episode, other]);
    expect(answer).toMatchObject({ sessions: 2 });
    const taken = await run.eventsOf("snapshot.taken");
    expect(taken).toMatchObject([
      { ...episode, checkpointId: "c1", provider: "dir" },
      { ...other, checkpointId: "c1" },
    ]);
    expect(await run.eventsOf("snapshot.durable")).toEqual([]);
    expect((await run.asked("commit", { checkpointId: "c1" })).problem).toBeUndefined();
    const snapshots = taken.map(({ snapshot }) => ({ snapshot }));
    expect(await run.eventsOf("snapshot.durable")).toEqual(snapshots);
    await run.resume("c1");
    expect(run.troubles).toEqual([]);
  });

  test("[C5] fails at the capture where one snapshot fails; everything keeps running, and nothing of it stays", async () => {
    const { run } = await seeded(episode, other);
    const folder = await run.sandboxOf(other);
    renameSync(folder, `${folder}-away`);
    const { answer } = await run.capture("c1", [episode, other]);
    expect(answer.problem).toMatchObject({ code: "not_found" });
    expect(run.snapshots()).toEqual([]);
    renameSync(`${folder}-away`, folder);
    await run.resume("c1");
    expect(await run.tool(other, "0/0", "list_files")).toContain("index.js");
    expect((await run.capture("c2", [episode, other])).answer).toMatchObject({ sessions: 2 });
  });

  test("[C5] fails at the commit where a snapshot went missing meanwhile, and the session goes on", async () => {
    const { run } = await seeded(episode);
    await run.capture("c1", [episode]);
    for (const snapshot of run.snapshots()) rmSync(join(run.stateDir, "snapshots", snapshot), { recursive: true });
    const answer = await run.asked("commit", { checkpointId: "c1" });
    expect(answer.problem).toMatchObject({ code: "invalid_checkpoint_state" });
    await run.resume("c1");
    expect(await run.tool(episode, "0/0", "list_files")).toContain("index.js");
  });

  test("holds tool calls until it is resumed, without waiting for them, and lets a close through", async () => {
    const { run } = await seeded(episode, other);
    await run.asked("prepare", { checkpointId: "c1" });
    let answered = false;
    const held = run.tool(episode, "0/0", "run_tests").finally(() => (answered = true));
    await run.rpc(other, "close");
    const again = await run.asked("prepare", { checkpointId: "c1" });
    expect(again).toMatchObject({ blockerCount: 0, continued: [episode] });
    expect(answered).toBe(false);
    await run.resume("c1");
    expect(await held).toMatch(/tests passed/);
  });

  test("waits for a tool call in flight, and names it", async () => {
    const { run } = await seeded(episode);
    const gate = join(run.stateDir, "gate");
    writeFileSync(gate, "");
    appendFileSync(join(await run.sandboxOf(episode), "index.js"), waitingFor(gate));
    const running = run.tool(episode, "0/0", "run_tests");
    await vi.waitFor(() => expect(run.executions()).toEqual(["run_tests 0/0 begin"]), patience);
    const late = await run.asked("prepare", { checkpointId: "c1", remainingMs: 0 });
    expect(late).toMatchObject({ blockerCount: 1, blockers: [{ ...episode, reason: "tool call in flight" }] });
    const { asked } = await run.ask("prepare", { checkpointId: "c1" });
    rmSync(gate);
    expect(await run.answerTo(asked)).toMatchObject({ blockerCount: 0, continued: [episode] });
    await running;
  });

  test("lets a verify through, whose verdict waits until it is resumed", async () => {
    const { run } = await seeded(episode);
    await run.capture("c1", [episode]);
    const verdict = run.verify(episode);
    await vi.waitFor(() => expect(run.executions()).toContain("verify null/null end"), patience);
    expect(await run.eventsOf("verify.finished")).toEqual([]);
    await run.resume("c1");
    expect(await verdict).toMatchObject({ failed: expect.any(Number) });
    expect(await run.eventsOf("verify.finished")).toHaveLength(1);
  });
});

describe("a restore", () => {
  test("[C6] forks what the checkpoint holds, also where the live sandbox looks untouched, and leaves the old one unused", async () => {
    const { run, task } = await seeded(episode);
    await edit(run, episode, "0/0", "kept");
    const cut = await run.checkpoint("c1", [episode]);
    await edit(run, episode, "1/0", "lost");
    const before = await run.sandboxOf(episode);
    await run.retire(episode);
    expect(existsSync(before)).toBe(false);
    const answer = await run.restore("restore-1", "c1", cut, [episode]);
    expect(answer).toMatchObject({ sessions: 1, installed: [next] });
    const after = await run.sandboxOf(next);
    expect(after).not.toBe(before);
    expect(readFileSync(join(after, "index.js"), "utf8")).toContain("// kept\n");
    await run.seed(next, task);
    expect(await edit(run, next, "1/0", "again")).toMatch(/^error: line 1 reads .*\/\/ kept/);
    await expect(run.tool(episode, "1/0", "list_files")).rejects.toMatchObject({ code: "stale_attempt" });
  });

  test("[C6] of a process that died after the checkpoint forks too, and its own sandbox is freed", async () => {
    const { run, task, server } = await seeded(episode);
    const cut = await run.checkpoint("c1", [episode]);
    const before = await run.sandboxOf(episode);
    await server.stop();
    await run.serve();
    await run.retire(episode);
    await run.restore("restore-1", "c1", cut, [episode]);
    expect(await run.sandboxOf(next)).not.toBe(before);
    expect(run.sandboxes()).toHaveLength(1);
    await run.seed(next, task);
    expect(await run.tool(next, "0/0", "list_files")).toContain("index.js");
  });

  test("[S18] is claimed by the seed, which keeps the task's state and runs no setup; asked again it answers the same", async () => {
    const { run, task } = await seeded(episode);
    await edit(run, episode, "0/0", "kept");
    const cut = await run.checkpoint("c1", [episode]);
    await run.retire(episode);
    await run.restore("restore-1", "c1", cut, [episode]);
    const sandbox = await run.sandboxOf(next);
    const reply = await run.seed(next, task);
    expect(reply).toMatchObject({ terms: { sandboxLent: true }, restart: null });
    expect(await run.seed(next, task)).toEqual(reply);
    expect(await run.sandboxOf(next)).toBe(sandbox);
    expect(await run.tool(next, "1/0", "read_file", { path: "index.js" })).toContain("// kept");
    const claims = (await run.eventsOf("session.seeded")).filter(({ attempt }) => attempt === 1);
    expect(claims).toHaveLength(1);
    await expect(run.seed(next, someTask("text-table", 2))).rejects.toMatchObject({ code: "session_conflict" });
    await expect(run.seed({ rollout: "r", attempt: 2 }, task)).rejects.toMatchObject({ code: "session_conflict" });
  });

  test("[L3] answers a call that had finished before the cut from the log of the attempt before", async () => {
    const { run, task } = await seeded(episode);
    const result = await run.tool(episode, "0/0", "run_tests");
    await run.tool(episode, "1/0", "list_files");
    const cut = await run.checkpoint("c1", [episode]);
    await run.retire(episode);
    await run.restore("restore-1", "c1", cut, [episode]);
    await run.seed(next, task);
    expect(await run.tool(next, "0/0", "run_tests")).toBe(result);
    expect(run.executions().filter((line) => line.startsWith("run_tests"))).toHaveLength(2);
  });

  test("[S20] does not repeat a verify that had finished", async () => {
    const { run, task } = await seeded(episode);
    const verdict = await run.verify(episode);
    const cut = await run.checkpoint("c1", [episode]);
    await run.retire(episode);
    await run.restore("restore-1", "c1", cut, [episode]);
    await run.seed(next, task);
    expect(await run.verify(next)).toEqual(verdict);
    expect(run.executions()).toEqual(["verify null/null begin", "verify null/null end"]);
  });

  test("[A11] of the same checkpoint works twice, each time from its state", async () => {
    const { run, task } = await seeded(episode);
    const cut = await run.checkpoint("c1", [episode]);
    await run.retire(episode);
    await run.restore("restore-1", "c1", cut, [episode]);
    await run.seed(next, task);
    await edit(run, next, "0/0", "first");
    await run.retire(next);
    const position = { [run.log.stream]: cut };
    const assignments = [{ rollout: "r", from: 0, to: 2 }];
    const answer = await run.restoreAs("restore-2", { source: "c1", cut: position, assignments });
    const third = { rollout: "r", attempt: 2 };
    expect(answer).toMatchObject({ installed: [third] });
    await run.seed(third, task);
    expect(await run.tool(third, "0/0", "read_file", { path: "index.js" })).not.toContain("// first");
    expect(run.sandboxes()).toHaveLength(1);
  });

  test("[A8] that nobody has claimed is in the next checkpoint, and restored from that one", async () => {
    const { run, task } = await seeded(episode);
    await edit(run, episode, "0/0", "kept");
    const cut = await run.checkpoint("c1", [episode]);
    await run.retire(episode);
    await run.restore("restore-1", "c1", cut, [episode]);
    const later = await run.checkpoint("c2", [next]);
    await run.release("c2", ["c2"], ["c1"]);
    await run.retire(next);
    const answer = await run.restore("restore-2", "c2", later, [next]);
    const third = { rollout: "r", attempt: 2 };
    expect(answer).toMatchObject({ installed: [third] });
    await run.seed(third, task);
    expect(await run.tool(third, "1/0", "read_file", { path: "index.js" })).toContain("// kept");
  });

  test.each([
    ["is missing", (snapshot: string) => rmSync(snapshot, { recursive: true })],
    ["is damaged", (snapshot: string) => appendFileSync(join(snapshot, "tree", "index.js"), "\n")],
    [
      "is of another provider",
      (snapshot: string) => {
        const path = join(snapshot, "manifest.json");
        writeFileSync(path, readFileSync(path, "utf8").replace('"provider":"dir"', '"provider":"overlay"'));
      },
    ],
  ])("[C7][C4] where one snapshot %s fails with a typed error, and touches nothing", async (_, spoil) => {
    const { run, task } = await seeded(episode, other);
    const cut = await run.checkpoint("c1", [episode, other]);
    const [, second] = await run.eventsOf("snapshot.taken");
    await run.retire(episode, other);
    await run.seed({ rollout: "beside", attempt: 0 }, task);
    const before = run.sandboxes();
    spoil(join(run.stateDir, "snapshots", String(second?.["snapshot"])));
    const answer = await run.restore("restore-1", "c1", cut, [episode, other]);
    expect(answer.problem).toMatchObject({ code: "invalid_checkpoint_state" });
    expect(answer.installed).toBeUndefined();
    expect(run.sandboxes()).toEqual(before);
    expect(await run.tool({ rollout: "beside", attempt: 0 }, "0/0", "list_files")).toContain("index.js");
  });

  test("[A18] that another participant could not follow leaves no fork behind", async () => {
    const { run } = await seeded(episode);
    const cut = await run.checkpoint("c1", [episode]);
    await run.retire(episode);
    const order = { source: "c1", cut: { [run.log.stream]: cut }, assignments: [{ rollout: "r", from: 0, to: 1 }] };
    const { asked, command } = await run.ask("restore", { checkpointId: "restore-1", ...order });
    expect((await run.answerTo(asked)).problem).toBeUndefined();
    expect(run.sandboxes()).toHaveLength(1);
    const problem = { code: "unavailable" as const, message: "the model is away" };
    await run.control({
      type: "restore.failed",
      data: { command, checkpointId: "restore-1", source: "c1", problem },
    });
    await run.retire(next);
    await run.resume("restore-1");
    await vi.waitFor(() => expect(run.sandboxes()).toEqual([]), patience);
    await expect(run.tool(next, "0/0", "list_files")).rejects.toMatchObject({ code: "stale_attempt" });
  });
});

describe("a release", () => {
  test("[S11][S15] frees exactly what no kept checkpoint, live or restored session needs; again it is harmless", async () => {
    const { run } = await seeded(episode, other);
    await run.checkpoint("c1", [episode, other]);
    await run.checkpoint("c2", [episode]);
    const [first, second, third] = (await run.eventsOf("snapshot.taken")).map(({ snapshot }) => snapshot);
    // `other` is not in c2: its live session still names the snapshot of c1.
    expect((await run.release("c2", ["c2"], ["c1"])).problem).toBeUndefined();
    expect(await run.eventsOf("snapshot.deleted")).toEqual([{ snapshot: first }]);
    expect(new Set(run.snapshots())).toEqual(new Set([second, third]));
    await run.release("c2", ["c2"], []);
    expect(await run.eventsOf("snapshot.deleted")).toHaveLength(1);
    await run.rpc(other, "close");
    expect(run.snapshots()).toEqual([third]);
    await run.retire(episode);
    expect(run.snapshots()).toEqual([third]);
    await run.release("c2", [], ["c2"]);
    expect(run.snapshots()).toEqual([]);
  });

  test("[S15] twice at once, beside live seeds and calls, frees nothing that is needed", async () => {
    const { run, task } = await seeded(episode);
    await run.checkpoint("c1", [episode]);
    await run.checkpoint("c2", [episode]);
    const more = [1, 2, 3, 4].map((number) => ({ rollout: `m${number}`, attempt: 0 }));
    const work = more.map(async (each) => {
      await run.seed(each, task);
      return run.tool(each, "0/0", "run_tests");
    });
    await run.control({
      type: "checkpoint.releasing",
      data: { command: 99, checkpointId: "c2", kept: ["c2"], dropped: ["c1"] },
    });
    const release = { checkpointId: "c2", kept: ["c2"] };
    const asks = [await run.ask("release", release), await run.ask("release", release)];
    expect(await run.answerTo(asks.at(-1)?.asked ?? 0)).not.toHaveProperty("problem");
    for (const result of await Promise.all(work)) expect(result).toMatch(/tests passed/);
    const { checkpointId } = (await run.eventsOf("snapshot.taken")).find(({ snapshot }) =>
      run.snapshots().includes(String(snapshot)),
    ) ?? { checkpointId: null };
    expect(checkpointId).toBe("c2");
  });

  test("frees what was captured and never committed", async () => {
    const { run } = await seeded(episode);
    await run.capture("c1", [episode]);
    await run.resume("c1");
    await run.checkpoint("c2", [episode]);
    expect(run.snapshots()).toHaveLength(2);
    await run.release("c2", ["c2"], []);
    const [, committed] = await run.eventsOf("snapshot.taken");
    expect(run.snapshots()).toEqual([committed?.["snapshot"]]);
  });
});
