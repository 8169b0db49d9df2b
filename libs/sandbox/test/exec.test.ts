import { afterEach, describe, expect, test } from "vitest";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openWith, until } from "./scratch.ts";

/** Whether a process runs; a corpse does not. */
function runs(pid: string): boolean {
  const path = `/proc/${pid.trim()}/stat`;
  return existsSync(path) && !/\) [ZX]/.test(readFileSync(path, "latin1"));
}

const generous = 100_000;

describe("a command in a sandbox", () => {
  test("runs in its folder and gives output, exit code and no signal", async () => {
    const { provider, folder } = await openWith();
    const command = ["sh", "-c", "pwd; cat; echo wrong >&2; exit 3"] as const;
    const result = await provider.exec("s", { command, input: "told", timeoutMs: generous });
    expect(result).toEqual({
      exitCode: 3,
      signal: null,
      timedOut: false,
      stdout: `${folder}\ntold`,
      stderr: "wrong\n",
      truncated: false,
    });
  });

  test("starts where it is told to, and nowhere outside", async () => {
    const { provider, folder } = await openWith({ "a/b.txt": "" });
    const inside = await provider.exec("s", { command: ["pwd"], cwd: "a", timeoutMs: generous });
    expect(inside.stdout).toBe(`${join(folder, "a")}\n`);
    const outside = provider.exec("s", { command: ["pwd"], cwd: "../..", timeoutMs: generous });
    await expect(outside).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("inherits nothing of the environment but the path", async () => {
    process.env["SECRET_OF_TEST"] = "s3cret";
    const { provider, folder } = await openWith();
    const { stdout } = await provider.exec("s", { command: ["env"], env: { GIVEN: "yes" }, timeoutMs: generous });
    const names = new Set(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split("=")[0]),
    );
    for (const ofShells of ["PWD", "SHLVL", "_"]) names.delete(ofShells);
    expect(names).toEqual(new Set(["GIVEN", "HOLDPOINT_SANDBOX", "HOME", "PATH"]));
    expect(stdout).toContain(`HOME=${folder}\n`);
  });

  test("is seen while it runs, chunk by chunk", async () => {
    const { provider } = await openWith();
    const chunks: string[] = [];
    const command = ["sh", "-c", "echo out; echo err >&2; cat wait.txt 2>/dev/null; exit 0"] as const;
    const onOutput = (chunk: Uint8Array, stream: string) => chunks.push(`${stream}:${new TextDecoder().decode(chunk)}`);
    await provider.exec("s", { command, onOutput, timeoutMs: generous });
    expect(chunks.toSorted()).toEqual(["stderr:err\n", "stdout:out\n"]);
  });

  test("has its output cut off at the limit, and that is said", async () => {
    const { provider } = await openWith();
    const command = ["sh", "-c", "printf 123456; printf abc >&2"] as const;
    const short = await provider.exec("s", { command, maxOutputBytes: 4, timeoutMs: generous });
    expect(short).toMatchObject({ stdout: "1234", stderr: "abc", truncated: true });
    const whole = await provider.exec("s", { command, maxOutputBytes: 6, timeoutMs: generous });
    expect(whole).toMatchObject({ stdout: "123456", truncated: false });
  });

  test("that is not installed is refused by its name", async () => {
    const { provider } = await openWith();
    const missing = provider.exec("s", { command: ["no-such-program"], timeoutMs: generous });
    await expect(missing).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("no-such-program"),
    });
    expect(await provider.status("s")).toEqual({ state: "running", execs: 0 });
  });

  test("is killed when its CPU seconds are used up, whatever the clock says", async () => {
    const { provider } = await openWith();
    const command = ["sh", "-c", "while :; do :; done"] as const;
    const result = await provider.exec("s", { command, cpuSeconds: 1, timeoutMs: generous });
    expect(result).toMatchObject({ exitCode: null, signal: "SIGKILL", timedOut: false });
  });
});

describe("what a command has started", () => {
  const opened: Awaited<ReturnType<typeof openWith>>[] = [];
  afterEach(async () => {
    for (const { provider } of opened.splice(0)) await provider.close();
  });

  async function openedWith() {
    const fresh = await openWith();
    opened.push(fresh);
    return fresh;
  }

  test("is killed with it when its time is up, the whole group and what left the group", async () => {
    const { provider, folder } = await openedWith();
    const quiet = "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > two";
    const script = `sleep 1000 & echo $! > one; ${quiet}; echo ready; wait`;
    let ready = false;
    const abort = new AbortController();
    const running = provider.exec("s", {
      command: ["sh", "-c", script],
      timeoutMs: generous,
      signal: abort.signal,
      onOutput: () => {
        ready = true;
      },
    });
    await until(() => ready);
    abort.abort(new Error("called off"));
    await expect(running).rejects.toThrow("called off");
    for (const name of ["one", "two"]) {
      const pid = readFileSync(join(folder, name), "utf8");
      await until(() => !runs(pid));
    }
  });

  test("is killed when the time is up, and the result says so", async () => {
    const { provider, folder } = await openedWith();
    const script = "echo started; sleep 1000 & echo $! > one; wait";
    const result = await provider.exec("s", { command: ["sh", "-c", script], timeoutMs: 500 });
    expect(result).toMatchObject({ exitCode: null, signal: "SIGKILL", timedOut: true, stdout: "started\n" });
    await until(() => !runs(readFileSync(join(folder, "one"), "utf8")));
  });

  test("does not outlive a command that ends by itself, and does not hold it up", async () => {
    const { provider, folder } = await openedWith();
    const script = "sleep 1000 & echo $! > one; setsid sleep 1000 & echo $! > two; exit 0";
    expect(await provider.exec("s", { command: ["sh", "-c", script], timeoutMs: generous })).toMatchObject({
      exitCode: 0,
    });
    for (const name of ["one", "two"]) await until(() => !runs(readFileSync(join(folder, name), "utf8")));
  });

  test("and stayed in its group does not outlive it, also where nothing shows that it is there", async () => {
    const { provider, folder } = await openedWith();
    const script = "sleep 1000 >/dev/null 2>&1 </dev/null & echo $! > one";
    await provider.exec("s", { command: ["sh", "-c", script], timeoutMs: generous });
    const pid = readFileSync(join(folder, "one"), "utf8");
    await until(() => !runs(pid));
    expect(runs(pid)).toBe(false);
  });

  test("is killed when the sandbox is deleted, also what had left its group and closed its output", async () => {
    const { provider, folder } = await openedWith();
    const script =
      "setsid sh -c 'echo $$ > one; exec sleep 1000' >/dev/null 2>&1 </dev/null & while ! [ -s one ]; do :; done";
    await provider.exec("s", { command: ["sh", "-c", script], timeoutMs: generous });
    const pid = readFileSync(join(folder, "one"), "utf8");
    expect(runs(pid)).toBe(true);
    await provider.delete("s");
    expect(runs(pid)).toBe(false);
  });

  test("is killed when the provider is closed; sandboxes stay", async () => {
    const { provider } = await openedWith();
    const running = provider.exec("s", { command: ["sleep", "1000"], timeoutMs: generous });
    await until(async () => (await provider.status("s")).execs === 1);
    await provider.close();
    expect(await running).toMatchObject({ signal: "SIGKILL" });
    expect(await provider.list()).toEqual(["s"]);
  });

  test("in one sandbox is left alone when another is deleted", async () => {
    const { provider, root } = await openedWith();
    await provider.create("s2", join(root, "sandboxes", "s"));
    const running = provider.exec("s2", { command: ["sh", "-c", "cat"], timeoutMs: generous });
    await provider.delete("s");
    expect(await running).toMatchObject({ exitCode: 0 });
  });
});
