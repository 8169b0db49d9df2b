import { dirProvider, treeDigest } from "@holdpoint/sandbox";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { folderOf, freshPath, openWith, textIn, until } from "./scratch.ts";

const generous = 100_000;

/** Appends to `a` in each of the next turns. @returns what stops it */
function writeFor(turns: number, folder: string): () => void {
  let left = turns;
  const write = () => {
    if (left <= 0) return;
    left -= 1;
    appendFileSync(join(folder, "a"), "x");
    setImmediate(write);
  };
  write();
  return () => {
    left = 0;
  };
}

describe("a snapshot", () => {
  test("holds contents, permissions, times, links and empty folders, and a fork has them all", async () => {
    const { provider, root, folder } = await openWith({ "bin/run.sh": "run", "a.txt": "text" });
    chmodSync(join(folder, "bin/run.sh"), 0o755);
    utimesSync(join(folder, "a.txt"), 1_000_000, 1_000_000.5);
    mkdirSync(join(folder, "empty"));
    symlinkSync("/nowhere/at all", join(folder, "link"));
    mkdirSync(join(folder, "locked"));
    writeFileSync(join(folder, "locked/in.txt"), "in");
    chmodSync(join(folder, "locked"), 0o555);
    const taken = await provider.snapshot("s", "c1");
    await provider.fork(taken, "f");
    const fork = join(root, "sandboxes", "f");
    expect(await treeDigest(fork)).toBe(taken.digest);
    expect(await textIn(provider, "f", "a.txt")).toBe("text");
    expect(statSync(join(fork, "bin/run.sh")).mode & 0o7777).toBe(0o755);
    expect(statSync(join(fork, "locked")).mode & 0o7777).toBe(0o555);
    expect(statSync(join(fork, "a.txt")).mtimeMs).toBe(1_000_000_500);
    expect(readdirSync(join(fork, "empty"))).toEqual([]);
    expect(readlinkSync(join(fork, "link"))).toBe("/nowhere/at all");
    expect(taken).toMatchObject({ provider: "dir", snapshotId: "c1", files: 3, sizeBytes: 9, skipped: [] });
  });

  test("does not change when the sandbox does, also where it writes in place", async () => {
    const { provider } = await openWith({ "a.txt": "before" });
    const taken = await provider.snapshot("s", "c1");
    await provider.exec("s", { command: ["sh", "-c", "printf after | dd of=a.txt conv=notrunc"], timeoutMs: generous });
    await provider.delete("s");
    await provider.fork(taken, "f");
    expect(await textIn(provider, "f", "a.txt")).toBe("before");
  });

  test("names what it cannot hold", async () => {
    const { provider } = await openWith();
    await provider.exec("s", { command: ["mkfifo", "pipe"], timeoutMs: generous });
    expect((await provider.snapshot("s", "c1")).skipped).toEqual(["pipe"]);
  });

  test("is refused where the id is taken or is none, and leaves the one that is there", async () => {
    const { provider, root } = await openWith({ "a.txt": "first" });
    const taken = await provider.snapshot("s", "c1");
    await provider.writeFile("s", "a.txt", "second");
    await expect(provider.snapshot("s", "c1")).rejects.toMatchObject({ code: "session_conflict" });
    await expect(provider.snapshot("s", "../c1")).rejects.toMatchObject({ code: "invalid_request" });
    await provider.validate(taken);
    expect(readdirSync(join(root, "snapshots"))).toEqual(["c1"]);
  });

  test("of a sandbox at work is of one moment, and lets it go on", async () => {
    const many = Array.from({ length: 300 }, (_, index) => [`f${index}`, ""] as const);
    const { provider } = await openWith({ left: "", right: "", ...Object.fromEntries(many) });
    // Both files always have the same length, but for the moment between two writes.
    const script = "while ! [ -e stop ]; do printf x >> left; printf x >> right; done";
    const running = provider.exec("s", { command: ["sh", "-c", script], timeoutMs: generous });
    await until(async () => (await provider.listFiles("s", ".")).some((file) => file.sizeBytes > 100));
    for (const id of ["c1", "c2", "c3"]) {
      await provider.fork(await provider.snapshot("s", id), `f-${id}`);
      const [left, right] = [await textIn(provider, `f-${id}`, "left"), await textIn(provider, `f-${id}`, "right")];
      expect(left.length - right.length).toBeGreaterThanOrEqual(0);
      expect(left.length - right.length).toBeLessThanOrEqual(1);
    }
    await provider.writeFile("s", "stop", "");
    expect(await running).toMatchObject({ exitCode: 0 });
  });

  describe("of a tree that something else writes in", () => {
    // The copy lets others have their turn after every hundred entries; `a` is looked at before the first of them.
    const tree = { a: "", ...Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`f${index}`, ""])) };

    test("is refused, and leaves nothing", async () => {
      const { provider, root, folder } = await openWith(tree);
      const stop = writeFor(Infinity, folder);
      const outcome = await provider.snapshot("s", "c1").catch((error: unknown) => error);
      stop();
      expect(outcome).toMatchObject({ code: "unavailable" });
      expect(readdirSync(join(root, "snapshots"))).toEqual([]);
      await provider.snapshot("s", "c1");
    });

    test("is taken again, and is of one moment once that has stopped", async () => {
      const { provider, folder } = await openWith(tree);
      const copies = 8; // turns enough to spoil the first copy, too few to spoil the last
      writeFor(copies, folder);
      const taken = await provider.snapshot("s", "c1");
      expect(taken.digest).toBe(await treeDigest(folder));
      await provider.fork(taken, "f");
      expect(await textIn(provider, "f", "a")).toHaveLength(copies);
    });
  });

  test("that is durable is whole when it is read again", async () => {
    const { provider } = await openWith({ "a/b.txt": "text" });
    const taken = await provider.snapshot("s", "c1");
    await provider.makeDurable("c1");
    await provider.makeDurable("c1");
    await provider.validate(taken);
    await expect(provider.makeDurable("c2")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  });

  test("is gone once it is deleted; once more is no error", async () => {
    const { provider, root } = await openWith();
    const taken = await provider.snapshot("s", "c1");
    await provider.deleteSnapshot("c1");
    await provider.deleteSnapshot("c1");
    expect(await provider.listSnapshots()).toEqual([]);
    expect(readdirSync(join(root, "snapshots"))).toEqual([]);
    await expect(provider.validate(taken)).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  });

  test("is found by a provider that is opened anew", async () => {
    const { provider, root } = await openWith({ "a.txt": "text" });
    const taken = await provider.snapshot("s", "c1");
    const again = await dirProvider({ root });
    expect(await again.listSnapshots()).toEqual([{ snapshotId: "c1", foreign: false }]);
    await again.fork(taken, "f");
    expect(await textIn(again, "f", "a.txt")).toBe("text");
  });
});

describe("[C7] a reference", () => {
  const damages = [
    ["to a snapshot that is missing", (home: string) => rmSync(home, { recursive: true })],
    ["whose snapshot lacks a file", (home: string) => rmSync(join(home, "tree/a.txt"))],
    ["whose snapshot has another content", (home: string) => writeFileSync(join(home, "tree/a.txt"), "texT")],
    ["whose snapshot has other permissions", (home: string) => chmodSync(join(home, "tree/a.txt"), 0o777)],
    ["whose snapshot has no manifest", (home: string) => rmSync(join(home, "manifest.json"))],
    ["whose snapshot has half a manifest", (home: string) => writeFileSync(join(home, "manifest.json"), "{")],
    ["whose manifest is of another shape", (home: string) => writeFileSync(join(home, "manifest.json"), "{}")],
  ] as const;

  test.each(damages)("%s is refused with a typed error, and nothing is touched", async (_, damage) => {
    const { provider, root } = await openWith({ "a.txt": "text" });
    const taken = await provider.snapshot("s", "c1");
    damage(join(root, "snapshots", "c1"));
    await expect(provider.validate(taken)).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    await expect(provider.fork(taken, "f")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    expect(await provider.list()).toEqual(["s"]);
    expect(readdirSync(join(root, "sandboxes"))).toEqual(["s"]);
    expect(await textIn(provider, "s", "a.txt")).toBe("text");
  });

  test("of another provider, or with another digest, is refused", async () => {
    const { provider } = await openWith();
    const taken = await provider.snapshot("s", "c1");
    const wrong = [
      { ...taken, provider: "overlay" },
      { ...taken, digest: "0".repeat(64) },
    ];
    for (const reference of wrong) {
      await expect(provider.validate(reference)).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
      await expect(provider.fork(reference, "f")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
    }
    const elsewhere = { ...taken, provider: "overlay", snapshotId: "c9" };
    await expect(provider.validate(elsewhere)).rejects.toMatchObject({ message: expect.stringContaining("overlay") });
    await expect(provider.validate({ ...taken, snapshotId: "../s" })).rejects.toMatchObject({
      code: "invalid_request",
    });
    expect(await provider.list()).toEqual(["s"]);
  });

  test("is not forked over a sandbox that is there", async () => {
    const { provider } = await openWith({ "a.txt": "old" });
    const taken = await provider.snapshot("s", "c1");
    await provider.writeFile("s", "a.txt", "new");
    await expect(provider.fork(taken, "s")).rejects.toMatchObject({ code: "session_conflict" });
    expect(await textIn(provider, "s", "a.txt")).toBe("new");
  });
});

describe("the digest of a tree", () => {
  const base = { "a.txt": "text", "b/c.txt": "more" };
  const changes: readonly (readonly [string, (folder: string) => void])[] = [
    ["a content", (folder) => writeFileSync(join(folder, "a.txt"), "Text")],
    ["a permission", (folder) => chmodSync(join(folder, "a.txt"), 0o600)],
    ["a permission of a folder", (folder) => chmodSync(join(folder, "b"), 0o700)],
    ["an empty folder more", (folder) => mkdirSync(join(folder, "d"))],
    [
      "a link in place of a file",
      (folder) => {
        rmSync(join(folder, "a.txt"));
        symlinkSync("text", join(folder, "a.txt"));
      },
    ],
    [
      "a folder in place of a file",
      (folder) => {
        rmSync(join(folder, "a.txt"));
        mkdirSync(join(folder, "a.txt"));
      },
    ],
    ["a file less", (folder) => rmSync(join(folder, "b/c.txt"))],
  ];

  test.each(changes)("is another with %s", async (_, change) => {
    const folder = folderOf(base);
    const before = await treeDigest(folder);
    change(folder);
    expect(await treeDigest(folder)).not.toBe(before);
  });

  test("is another with another target of a link", async () => {
    const [one, other] = [folderOf({}), folderOf({})];
    symlinkSync("a", join(one, "l"));
    symlinkSync("b", join(other, "l"));
    expect(await treeDigest(one)).not.toBe(await treeDigest(other));
  });

  test("does not depend on times or on the order in which files were made", async () => {
    const [one, other] = [folderOf(base), folderOf({ "b/c.txt": "more", "a.txt": "text" })];
    utimesSync(join(other, "a.txt"), 1, 1);
    expect(await treeDigest(one)).toBe(await treeDigest(other));
  });

  test("is that of a copy, whatever the tree, and trees with other files have others", async () => {
    const name = fc.stringMatching(/^[a-zß"\\ ]{1,4}$/).filter((text) => text.trim() === text);
    const files = fc.dictionary(name, fc.string({ maxLength: 20 }), { maxKeys: 5 });
    const seen = new Map<string, string>();
    await fc.assert(
      fc.asyncProperty(files, async (tree) => {
        const folder = folderOf(tree);
        const { provider } = await openOver(folder);
        const taken = await provider.snapshot("t", "c");
        await provider.fork(taken, "f");
        expect(taken.digest).toBe(await treeDigest(folder));
        const content = JSON.stringify(Object.entries(tree).toSorted(([one], [two]) => (one < two ? -1 : 1)));
        expect(seen.get(taken.digest) ?? content).toBe(content);
        seen.set(taken.digest, content);
      }),
      { numRuns: 40 },
    );
  });

  test("covers files larger than one read, to the last byte", async () => {
    const size = 5 * 1024 * 1024 + 7;
    const folder = folderOf({ "big.bin": "x".repeat(size) });
    const { provider, root } = await openOver(folder);
    const taken = await provider.snapshot("t", "c");
    await provider.fork(taken, "f");
    expect(lstatSync(join(root, "sandboxes/f/big.bin")).size).toBe(size);
    writeFileSync(join(folder, "big.bin"), `${"x".repeat(size - 1)}y`);
    expect(await treeDigest(folder)).not.toBe(taken.digest);
    expect(taken.sizeBytes).toBe(size);
  });

  test("is refused for a file name that is not UTF-8", async () => {
    const { provider, folder } = await openWith();
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe])]), "");
    await expect(provider.snapshot("s", "c1")).rejects.toMatchObject({ code: "invalid_request" });
  });
});

async function openOver(template: string) {
  const root = freshPath();
  const provider = await dirProvider({ root });
  await provider.create("t", template);
  expect(existsSync(join(root, "sandboxes", "t"))).toBe(true);
  return { provider, root };
}
