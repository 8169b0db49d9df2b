import { describe, expect, test } from "vitest";
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { folderOf, openWith, textIn, until } from "./scratch.ts";

const outside = () => folderOf({ "secret.txt": "secret" });

describe("a path", () => {
  test.each(["../index.js", "a/../../index.js", "/etc/hostname", "", "a\0b", ".."])("%j is refused", async (path) => {
    const { provider } = await openWith({ "index.js": "one", "a/b.js": "" });
    const refusal = { code: "invalid_request" };
    await expect(provider.readFile("s", path)).rejects.toMatchObject(refusal);
    await expect(provider.writeFile("s", path, "")).rejects.toMatchObject(refusal);
    await expect(provider.listFiles("s", path)).rejects.toMatchObject(refusal);
  });

  test("with dots that stay inside is the file's", async () => {
    const { provider } = await openWith({ "index.js": "one", "a/b.js": "" });
    expect(await textIn(provider, "s", "a/../index.js")).toBe("one");
  });

  test("that begins with dots but does not leave is a file like any other", async () => {
    const { provider } = await openWith({});
    await provider.writeFile("s", "..hidden/...", "x");
    expect(await textIn(provider, "s", "..hidden/...")).toBe("x");
  });

  test("of no file is not found, of a folder or a pipe is refused at once", async () => {
    const { provider } = await openWith({ "a/b.js": "" });
    await provider.exec("s", { command: ["mkfifo", "pipe"], timeoutMs: 100_000 });
    await expect(provider.readFile("s", "none.js")).rejects.toMatchObject({ code: "not_found" });
    await expect(provider.readFile("s", "a/b.js/c")).rejects.toMatchObject({ code: "not_found" });
    await expect(provider.readFile("s", "a")).rejects.toMatchObject({ code: "invalid_request" });
    await expect(provider.readFile("s", "pipe")).rejects.toMatchObject({ code: "invalid_request" });
    await expect(provider.writeFile("s", "a", "")).rejects.toMatchObject({ code: "invalid_request" });
    await expect(provider.writeFile("s", ".", "")).rejects.toMatchObject({ code: "invalid_request" });
    await expect(provider.writeFile("s", "a/b.js/c", "")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("a symbolic link", () => {
  test("that leaves is not read through, written through or listed through", async () => {
    const { provider, folder } = await openWith({ "a.js": "" });
    const home = outside();
    symlinkSync(join(home, "secret.txt"), join(folder, "file"));
    symlinkSync(home, join(folder, "folder"));
    symlinkSync("../../..", join(folder, "up"));
    for (const path of ["file", "folder/secret.txt", "up/x"]) {
      const read = provider.readFile("s", path);
      await expect(read).rejects.toMatchObject({ code: path === "up/x" ? "not_found" : "invalid_request" });
      await expect(provider.writeFile("s", path, "gone")).rejects.toMatchObject({ code: "invalid_request" });
    }
    await expect(provider.writeFile("s", "folder/new/x", "")).rejects.toMatchObject({ code: "invalid_request" });
    await expect(provider.listFiles("s", "folder")).rejects.toMatchObject({ code: "invalid_request" });
    await expect(provider.exec("s", { command: ["pwd"], cwd: "folder", timeoutMs: 1000 })).rejects.toMatchObject({
      code: "invalid_request",
    });
    expect((await provider.listFiles("s")).map(({ path }) => path)).toEqual(["a.js", "file", "folder", "up"]);
    expect(readFileSync(join(home, "secret.txt"), "utf8")).toBe("secret");
    expect(readdirSync(home)).toEqual(["secret.txt"]);
  });

  test("that stays inside is read and written through", async () => {
    const { provider, folder } = await openWith({ "lib/a.js": "old" });
    symlinkSync("lib/a.js", join(folder, "main.js"));
    symlinkSync("lib", join(folder, "alias"));
    await provider.writeFile("s", "main.js", "new");
    expect(lstatSync(join(folder, "main.js")).isSymbolicLink()).toBe(true);
    expect(await textIn(provider, "s", "lib/a.js")).toBe("new");
    await provider.writeFile("s", "alias/a.js", "newer");
    expect(await textIn(provider, "s", "main.js")).toBe("newer");
  });

  test("that takes a folder's place between look and act leads nobody out", async () => {
    const { provider, folder, root } = await openWith({ "real/secret.txt": "inside" });
    const home = outside();
    symlinkSync(home, join(folder, "trap"));
    const running = provider.exec("s", { command: [process.execPath, "-e", swap], timeoutMs: 100_000 });
    await until(() => existsSync(join(folder, "going")));
    const seen = new Set<string>();
    for (let round = 0; round < 300 || seen.size === 0; round += 1) {
      await textIn(provider, "s", "real/secret.txt").then(
        (text) => seen.add(text),
        () => {},
      );
      await provider.writeFile("s", "real/written.txt", "x").catch(() => {});
    }
    await provider.writeFile("s", "stop", "");
    expect(await running).toMatchObject({ exitCode: 0 });
    expect(seen).toEqual(new Set(["inside"]));
    expect(readdirSync(home)).toEqual(["secret.txt"]);
    expect(readdirSync(join(root, "sandboxes"))).toEqual(["s"]);
  });
});

/** Lets `real` be a folder and a link that leaves by turns, until there is a file `stop`. A writer may make it in between. */
const swap = `
  const fs = require("fs");
  function attempt(work) {
    try {
      work();
      return true;
    } catch {
      return false;
    }
  }
  function move(from, to) {
    while (!attempt(() => fs.renameSync(from, to))) attempt(() => fs.rmSync(to, { recursive: true, force: true }));
  }
  fs.writeFileSync("going", "");
  while (!fs.existsSync("stop")) {
    move("real", "spare");
    move("trap", "real");
    move("real", "trap");
    move("spare", "real");
  }`;

describe("writing a file", () => {
  test("keeps the permissions of the one it replaces", async () => {
    const { provider, folder } = await openWith({ "run.sh": "old" });
    chmodSync(join(folder, "run.sh"), 0o750);
    await provider.writeFile("s", "run.sh", "new");
    expect(statSync(join(folder, "run.sh")).mode & 0o777).toBe(0o750);
  });

  test("leaves no temporary file where it fails", async () => {
    const { provider, folder, root } = await openWith({});
    mkdirSync(join(folder, "taken"));
    await expect(provider.writeFile("s", "taken", "x")).rejects.toMatchObject({ code: "invalid_request" });
    expect(readdirSync(join(root, "sandboxes"))).toEqual(["s"]);
  });
});
