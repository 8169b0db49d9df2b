import { dirProvider } from "@holdpoint/sandbox";
import { describe, expect, test } from "vitest";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { folderOf, openWith, textIn, until } from "./scratch.ts";

describe("the dir provider", () => {
  test("says that it shares nothing, holds no memory and isolates nothing", async () => {
    const { provider } = await openWith();
    expect(provider.name).toBe("dir");
    expect(provider.capabilities).toEqual({ copyOnWrite: false, freeze: false, memory: false, isolation: "none" });
  });

  test("refuses a relative root", async () => {
    await expect(dirProvider({ root: "somewhere" })).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("finds its sandboxes again when it is opened anew", async () => {
    const { root } = await openWith({ "a.txt": "kept" });
    const again = await dirProvider({ root });
    expect(await again.list()).toEqual(["s"]);
    expect(await textIn(again, "s", "a.txt")).toBe("kept");
  });
});

describe("creating a sandbox", () => {
  test("copies the template, which what happens in the sandbox does not change", async () => {
    const { provider } = await openWith();
    const template = folderOf({ "lib/a.js": "before" });
    await provider.create("t", template);
    await provider.writeFile("t", "lib/a.js", "after");
    await provider.create("u", template);
    expect(await textIn(provider, "u", "lib/a.js")).toBe("before");
    expect(await provider.list()).toEqual(["s", "t", "u"]);
  });

  test("is refused where the id is taken, and leaves the one that is there", async () => {
    const { provider, root } = await openWith({ "a.txt": "first" });
    await expect(provider.create("s", folderOf({}))).rejects.toMatchObject({ code: "session_conflict" });
    expect(await textIn(provider, "s", "a.txt")).toBe("first");
    expect(readdirSync(join(root, "sandboxes"))).toEqual(["s"]);
  });

  test.each(["", "..", "a/b", ".tmp-1-1-1", "a b", "ü"])("is refused for the id %j", async (id) => {
    const { provider } = await openWith();
    await expect(provider.create(id, folderOf({}))).rejects.toMatchObject({ code: "invalid_request" });
  });

  test.each(["relative", "/no/such/folder", "/dev/null"])("is refused for the template %s", async (template) => {
    const { provider } = await openWith();
    await expect(provider.create("t", template)).rejects.toMatchObject({ code: "invalid_request" });
  });
});

describe("a sandbox that is not there", () => {
  test("is absent, and everything but deleting it is refused", async () => {
    const { provider } = await openWith();
    expect(await provider.status("t")).toEqual({ state: "absent", execs: 0 });
    await provider.delete("t");
    const attempts = [
      () => provider.exec("t", { command: ["true"], timeoutMs: 1000 }),
      () => provider.readFile("t", "a"),
      () => provider.writeFile("t", "a", ""),
      () => provider.listFiles("t"),
      () => provider.freeze("t"),
      () => provider.thaw("t"),
      () => provider.snapshot("t", "c"),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ code: "not_found" });
  });

  test("leaves no folder behind when it was deleted", async () => {
    const { provider, root } = await openWith();
    await provider.delete("s");
    await provider.delete("s");
    expect(readdirSync(join(root, "sandboxes"))).toEqual([]);
  });
});

describe("files", () => {
  test("are uploaded and downloaded as they are", async () => {
    const { provider } = await openWith();
    const home = folderOf({ "bytes.bin": "\u0000\u0001" });
    await provider.upload("s", join(home, "bytes.bin"), "deep/er/bytes.bin");
    await provider.download("s", "deep/er/bytes.bin", join(home, "back.bin"));
    expect(existsSync(join(home, "back.bin"))).toBe(true);
    expect(await textIn(provider, "s", "deep/er/bytes.bin")).toBe("\u0000\u0001");
  });

  test("are listed by path with type and size", async () => {
    const { provider } = await openWith({ "b.txt": "22", "a/c.txt": "333" });
    await provider.exec("s", { command: ["ln", "-s", "b.txt", "link"], timeoutMs: 100_000 });
    await provider.exec("s", { command: ["mkfifo", "pipe"], timeoutMs: 100_000 });
    expect((await provider.listFiles("s")).map(({ path, type }) => `${type} ${path}`)).toEqual([
      "folder a",
      "file a/c.txt",
      "file b.txt",
      "link link",
      "other pipe",
    ]);
    expect(await provider.listFiles("s", "a")).toEqual([{ path: "a/c.txt", type: "file", sizeBytes: 3 }]);
  });
});

describe("a frozen sandbox", () => {
  test("runs nothing, not even what left its group, and goes on where it was", async () => {
    const { provider } = await openWith({ count: "" });
    const script =
      "setsid sh -c 'while ! [ -e stop ]; do echo x >> count; done' & while ! [ -e stop ]; do :; done; wait";
    const running = provider.exec("s", { command: ["sh", "-c", script], timeoutMs: 100_000 });
    const size = async () => (await textIn(provider, "s", "count")).length;
    await until(async () => (await size()) > 10);
    await provider.freeze("s");
    expect(await provider.status("s")).toEqual({ state: "frozen", execs: 1 });
    const before = await provider.snapshot("s", "c1");
    const after = await provider.snapshot("s", "c2");
    expect(after.digest).toBe(before.digest);
    const stopped = await size();
    await provider.thaw("s");
    await until(async () => (await size()) > stopped);
    await provider.writeFile("s", "stop", "");
    expect(await running).toMatchObject({ exitCode: 0 });
  });

  test("keeps writers and commands waiting until it is thawed, and readers not", async () => {
    const { provider } = await openWith({ "a.txt": "old" });
    await provider.freeze("s");
    await provider.freeze("s");
    const done: string[] = [];
    const write = provider.writeFile("s", "a.txt", "new").then(() => done.push("written"));
    const exec = provider.exec("s", { command: ["true"], timeoutMs: 100_000 }).then(() => done.push("run"));
    expect(await textIn(provider, "s", "a.txt")).toBe("old");
    await provider.snapshot("s", "c1");
    expect(await textIn(provider, "s", "a.txt")).toBe("old");
    expect(done).toEqual([]);
    await provider.thaw("s");
    await provider.thaw("s");
    await Promise.all([write, exec]);
    expect(done.toSorted()).toEqual(["run", "written"]);
    expect(await textIn(provider, "s", "a.txt")).toBe("new");
  });

  test("that is deleted lets nobody wait for ever", async () => {
    const { provider } = await openWith();
    await provider.freeze("s");
    const waiting = [
      provider.writeFile("s", "a.txt", "new"),
      provider.exec("s", { command: ["true"], timeoutMs: 100_000 }),
    ].map((work) => work.catch((error: unknown) => error));
    await provider.listFiles("s"); // meanwhile they have come to wait
    await provider.snapshot("s", "c1");
    await provider.delete("s");
    for (const outcome of waiting) expect(await outcome).toMatchObject({ code: "not_found" });
  });
});

describe("a sandbox that is being deleted", () => {
  test("starts nothing any more", async () => {
    const { provider } = await openWith();
    const deleting = provider.delete("s");
    const request = { command: ["sleep", "1000"], timeoutMs: 100_000 } as const;
    const outcome = await provider.exec("s", request).catch((error: unknown) => error);
    await deleting;
    expect(outcome).toMatchObject({ code: "not_found" });
    await provider.create("s", folderOf({ "a.txt": "anew" }));
    expect(await textIn(provider, "s", "a.txt")).toBe("anew");
  });
});
