import {
  type Checkpointer,
  type CheckpointerOptions,
  type IsReferenced,
  openCheckpointer,
  type SnapshotEvent,
} from "@holdpoint/sandbox";
import { describe, expect, test } from "vitest";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { folderOf, freshPath, type Opened, openWith, textIn } from "./scratch.ts";

const everything = () => true;
const nothing = () => false;
const noLog = async () => {};
const fencedLog = async () => {
  throw new Error("fenced");
};

type Named = Parameters<IsReferenced>[0];
const isOfC2 = ({ checkpointId }: Named) => checkpointId === "C2";
const isNotOfC1 = ({ checkpointId }: Named) => checkpointId !== "C1";

interface Setup extends Opened {
  readonly checkpointer: Checkpointer;
  /** All that was appended, oldest first. */
  readonly log: SnapshotEvent[];
}

/** Sandboxes `s`, `s1`, `s2`, … up to `count`, each with a file `a.txt` that says its own id. */
async function setUp(count = 1, options: Partial<CheckpointerOptions> = {}): Promise<Setup> {
  const opened = await openWith({ "a.txt": "s" });
  for (let index = 1; index < count; index += 1)
    await opened.provider.create(`s${index}`, folderOf({ "a.txt": `s${index}` }));
  const log: SnapshotEvent[] = [];
  const append = async (events: readonly SnapshotEvent[]) => void log.push(...events);
  const { provider } = opened;
  const whose = { stateDir: freshPath(), server: "tools", run: "demo" };
  return { ...opened, checkpointer: await openCheckpointer({ provider, append, ...whose, ...options }), log };
}

function order(sandbox: string, snapshot: string, checkpointId: string | null = "C1") {
  return { rollout: "g0-r0", attempt: 0, sandbox, snapshot, checkpointId };
}

const typesOf = (log: readonly SnapshotEvent[]) => log.map(({ type, data }) => `${type} ${data.snapshot}`);

describe("snapshots of many sandboxes", () => {
  test("are all taken, and stand in the log with their digests when they are whole", async () => {
    const { checkpointer, provider, log } = await setUp(20);
    const sandboxes = await provider.list();
    const taken = await checkpointer.snapshot(sandboxes.map((sandbox) => order(sandbox, `c-${sandbox}`)));
    expect(taken.map(({ snapshotId }) => snapshotId)).toEqual(sandboxes.map((sandbox) => `c-${sandbox}`));
    expect(log.map(({ data }) => data)).toEqual(
      taken.map(({ digest }, index) => ({
        ...order(sandboxes[index] ?? "", `c-${sandboxes[index]}`),
        digest,
        provider: "dir",
      })),
    );
    expect([...checkpointer.index.values()].every(({ durable }) => !durable)).toBe(true);
  });

  test("become durable in the log once, after they are on disk", async () => {
    const { checkpointer, log } = await setUp();
    await checkpointer.snapshot([order("s", "c1"), order("s", "c2")]);
    await checkpointer.makeDurable(["c1"]);
    await checkpointer.makeDurable(["c1", "c2"]);
    expect(typesOf(log)).toEqual([
      "snapshot.taken c1",
      "snapshot.taken c2",
      "snapshot.durable c1",
      "snapshot.durable c2",
    ]);
    expect(checkpointer.index.get("c1")?.durable).toBe(true);
    await expect(checkpointer.makeDurable(["c3"])).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  });

  test("that are in the log but not on disk do not become durable", async () => {
    const { checkpointer, root, log } = await setUp();
    await checkpointer.snapshot([order("s", "c1")]);
    rmSync(join(root, "snapshots/c1"), { recursive: true });
    await expect(checkpointer.makeDurable(["c1"])).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(typesOf(log)).toEqual(["snapshot.taken c1"]);
  });

  test("[C5] fail together when one fails; the sandboxes run on, and what was taken is an orphan", async () => {
    const { checkpointer, provider, log } = await setUp(3);
    const orders = [order("s", "c0"), order("s1", "c1"), order("gone", "c2"), order("s2", "c3")];
    await expect(checkpointer.snapshot(orders)).rejects.toMatchObject({ code: "not_found" });
    expect(log).toEqual([]);
    expect(checkpointer.index.size).toBe(0);
    for (const sandbox of ["s", "s1", "s2"]) {
      expect(await provider.exec(sandbox, { command: ["cat", "a.txt"], timeoutMs: 100_000 })).toMatchObject({
        stdout: sandbox,
      });
    }
    const { orphans } = await checkpointer.collectGarbage(everything, { apply: true });
    expect(orphans).toContain("c0");
    expect(await provider.listSnapshots()).toEqual([]);
  });

  test("[C5] that are late fail together, and none is in the log", async () => {
    const { checkpointer, provider, log } = await setUp(3);
    const late = AbortSignal.abort(new Error("the deadline has passed"));
    const orders = [order("s", "c0"), order("s1", "c1")];
    await expect(checkpointer.snapshot(orders, late)).rejects.toMatchObject({ code: "deadline_exceeded" });
    const deadline = new AbortController();
    const overtaken = checkpointer.snapshot([order("s", "c2")], deadline.signal).catch((error: unknown) => error);
    deadline.abort();
    expect(await overtaken).toMatchObject({ code: "deadline_exceeded" });
    await checkpointer.snapshot([order("s", "c9")]);
    await expect(checkpointer.makeDurable(["c9"], late)).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect(typesOf(log)).toEqual(["snapshot.taken c9"]);
    expect(await provider.list()).toEqual(["s", "s1", "s2"]);
  });

  test("[C5] are not taken where the log cannot be written", async () => {
    const { checkpointer, provider } = await setUp(1, { append: fencedLog });
    await expect(checkpointer.snapshot([order("s", "c0")])).rejects.toThrow("fenced");
    expect(checkpointer.index.size).toBe(0);
    expect((await checkpointer.collectGarbage(everything)).orphans).toEqual(["c0"]);
    expect(await textIn(provider, "s", "a.txt")).toBe("s");
  });
});

describe("a restore", () => {
  test("[C6] forks even where the live sandbox is untouched, and then stops what is superseded", async () => {
    const { checkpointer, provider } = await setUp();
    const [reference] = await checkpointer.snapshot([order("s", "c1")]);
    if (reference === undefined) throw new Error("no snapshot was taken");
    await checkpointer.restore([{ reference, sandbox: "f" }], ["s"]);
    expect(await provider.list()).toEqual(["f"]);
    expect(await textIn(provider, "f", "a.txt")).toBe("s");
  });

  test("[C6] of one snapshot can be done twice, to sandboxes that know nothing of each other", async () => {
    const { checkpointer, provider } = await setUp();
    const [reference] = await checkpointer.snapshot([order("s", "c1")]);
    if (reference === undefined) throw new Error("no snapshot was taken");
    await checkpointer.restore([{ reference, sandbox: "f1" }]);
    await provider.writeFile("f1", "a.txt", "changed");
    await checkpointer.restore([{ reference, sandbox: "f2" }]);
    expect(await textIn(provider, "f2", "a.txt")).toBe("s");
  });

  test("[C7] with one reference that is missing or foreign touches nothing", async () => {
    const { checkpointer, provider } = await setUp();
    const [reference] = await checkpointer.snapshot([order("s", "c1")]);
    if (reference === undefined) throw new Error("no snapshot was taken");
    for (const wrong of [
      { ...reference, snapshotId: "c2" },
      { ...reference, provider: "overlay" },
    ]) {
      const orders = [
        { reference, sandbox: "f1" },
        { reference: wrong, sandbox: "f2" },
      ];
      await expect(checkpointer.restore(orders, ["s"])).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
      expect(await provider.list()).toEqual(["s"]);
    }
  });

  test("[C7] looks at every reference before it forks the first", async () => {
    const { checkpointer } = await setUp(1, { lanes: 1 });
    const [reference] = await checkpointer.snapshot([order("s", "c1")]);
    if (reference === undefined) throw new Error("no snapshot was taken");
    const conflict = { reference, sandbox: "s" };
    const missing = { reference: { ...reference, snapshotId: "c2" }, sandbox: "f" };
    await expect(checkpointer.restore([conflict, missing])).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  });

  test("in which one fork fails stops every fork that it made, and keeps the originals", async () => {
    const { checkpointer, provider } = await setUp(2);
    const [reference] = await checkpointer.snapshot([order("s", "c1")]);
    if (reference === undefined) throw new Error("no snapshot was taken");
    const orders = ["f1", "f2", "s1", "f3"].map((sandbox) => ({ reference, sandbox }));
    await expect(checkpointer.restore(orders, ["s"])).rejects.toMatchObject({ code: "session_conflict" });
    expect(await provider.list()).toEqual(["s", "s1"]);
    expect(await textIn(provider, "s1", "a.txt")).toBe("s1");
  });
});

describe("[C8] stopping sandboxes", () => {
  test("twice, or after they are gone, is no error and keeps their snapshots", async () => {
    const { checkpointer, provider } = await setUp(2);
    const taken = await checkpointer.snapshot([order("s", "c1"), order("s1", "c2")]);
    await checkpointer.stop(["s", "s1"]);
    await checkpointer.stop(["s", "s1", "never-was"]);
    expect(await provider.list()).toEqual([]);
    for (const reference of taken) await provider.validate(reference);
  });

  test("at the end frees the snapshots that nothing references, and those alone", async () => {
    const { checkpointer, provider, log } = await setUp();
    await checkpointer.snapshot([order("s", "c1", "C1"), order("s", "c2", "C2"), order("s", "c3", null)]);
    await checkpointer.stop(["s"]);
    expect(await checkpointer.release(isOfC2)).toEqual(["c1", "c3"]);
    expect(await checkpointer.release(isOfC2)).toEqual([]);
    expect((await provider.listSnapshots()).map(({ snapshotId }) => snapshotId)).toEqual(["c2"]);
    expect(typesOf(log).slice(3)).toEqual(["snapshot.deleted c1", "snapshot.deleted c3"]);
    expect([...checkpointer.index.keys()]).toEqual(["c2"]);
  });
});

describe("a release", () => {
  test("frees nothing before the log says so", async () => {
    const seen: string[][] = [];
    const { root } = await openWith();
    const setup = await setUp(1, {
      append: async (events) => {
        if (events.some(({ type }) => type === "snapshot.deleted"))
          seen.push(readdirSync(join(setup.root, "snapshots")));
      },
    });
    await setup.checkpointer.snapshot([order("s", "c1")]);
    await setup.checkpointer.release(nothing);
    expect(seen).toEqual([["c1"]]);
    expect(existsSync(join(root, "snapshots", "c1"))).toBe(false);
  });

  test("that cannot append frees nothing", async () => {
    let fenced = false;
    const append = async () => {
      if (fenced) throw new Error("fenced");
    };
    const { checkpointer, provider } = await setUp(1, { append });
    await checkpointer.snapshot([order("s", "c1")]);
    fenced = true;
    await expect(checkpointer.release(nothing)).rejects.toThrow("fenced");
    expect(await provider.listSnapshots()).toHaveLength(1);
  });

  test("that is called off leaves what it did not get to as orphans", async () => {
    const { checkpointer, provider } = await setUp();
    await checkpointer.snapshot([order("s", "c1")]);
    expect(await checkpointer.release(nothing, AbortSignal.abort())).toEqual([]);
    expect(await provider.listSnapshots()).toHaveLength(1);
    expect((await checkpointer.collectGarbage(everything)).orphans).toEqual(["c1"]);
  });

  test("in two workers at once is harmless", async () => {
    const setup = await setUp(4);
    const { provider, checkpointer } = setup;
    await checkpointer.snapshot(["s", "s1", "s2", "s3"].map((sandbox) => order(sandbox, `c-${sandbox}`)));
    const whose = { stateDir: freshPath(), server: "tools", run: "demo" };
    const other = await openCheckpointer({ provider, append: noLog, ...whose, index: checkpointer.index });
    await Promise.all([checkpointer.release(nothing), other.release(nothing)]);
    expect(await provider.listSnapshots()).toEqual([]);
  });
});

describe("garbage", () => {
  test("is only reported unless it is to be removed", async () => {
    const { checkpointer, provider, root } = await setUp();
    await checkpointer.snapshot([order("s", "c1", "C1"), order("s", "c2", "C2"), order("s", "c3", "C3")]);
    await provider.snapshot("s", "unlogged");
    rmSync(join(root, "snapshots/c3"), { recursive: true });
    const leftover = join(root, "snapshots", ".tmp-999999999-1-1");
    mkdirSync(leftover);
    const expected = { orphans: ["unlogged"], unreferenced: ["c1"], missing: ["c3"], leftovers: [leftover] };
    expect(await checkpointer.collectGarbage(isNotOfC1)).toEqual(expected);
    expect(readdirSync(join(root, "snapshots"))).toHaveLength(4);
    expect(await checkpointer.collectGarbage(isNotOfC1, { apply: true })).toEqual(expected);
    expect(readdirSync(join(root, "snapshots"))).toEqual(["c2"]);
    expect(await checkpointer.collectGarbage(isNotOfC1)).toMatchObject({
      orphans: [],
      unreferenced: [],
      leftovers: [],
    });
  });

  test("is not what is being taken and is not yet in the log", async () => {
    const reports: unknown[] = [];
    const setup: Setup = await setUp(1, {
      append: async () => {
        reports.push(await setup.checkpointer.collectGarbage(nothing, { apply: true }));
      },
    });
    await setup.checkpointer.snapshot([order("s", "c1")]);
    expect(reports).toEqual([{ orphans: [], unreferenced: [], missing: [], leftovers: [] }]);
    expect(await setup.provider.listSnapshots()).toHaveLength(1);
  });

  test("is told from what another worker has logged", async () => {
    const { checkpointer, provider } = await setUp();
    const { digest } = await provider.snapshot("s", "c1");
    const elsewhere: SnapshotEvent = { type: "snapshot.taken", data: { ...order("s", "c1"), digest } };
    checkpointer.observe([elsewhere]);
    expect(await checkpointer.collectGarbage(everything)).toMatchObject({ orphans: [], unreferenced: [], missing: [] });
  });
});

describe("[S19] a checkpointer", () => {
  test("refuses a relative state directory, and that of another server", async () => {
    const { provider } = await openWith();
    const open = (stateDir: string, server: string) =>
      openCheckpointer({ provider, append: noLog, stateDir, server, run: "demo" });
    await expect(open("state", "one")).rejects.toMatchObject({ code: "invalid_request" });
    const stateDir = freshPath();
    await open(stateDir, "one");
    await expect(open(stateDir, "two")).rejects.toMatchObject({ code: "invalid_request" });
  });
});
