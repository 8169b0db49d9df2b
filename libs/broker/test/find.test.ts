/** Which nats-server is taken: shell scripts stand for servers, since only what they print of their version counts. */
import { findServer, provideCli, provideServer } from "@holdpoint/broker";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "broker-find-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function script(folder: string, name: string, body: string): string {
  mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, folder, name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return join(root, folder, name);
}

function server(folder: string, version: string): string {
  return script(folder, "nats-server", `echo "nats-server: v${version}"`);
}

function environment(...path: string[]) {
  return { PATH: path.map((folder) => join(root, folder)).join(":"), HOLDPOINT_CACHE: join(root, "cache") };
}

/** The body of a script that stands for Go: it "builds" a server of `version`. */
function goThatBuilds(version: string): string {
  return `[ "$1" = install ] || exit 2
printf '#!/bin/sh\\necho "nats-server: v${version}"\\n' > "$GOBIN/nats-server"
/bin/chmod 755 "$GOBIN/nats-server"`;
}

describe("finding a server", () => {
  test("an old one is refused by name and version", async () => {
    const old = server("old", "2.9.10");
    await expect(findServer({ env: environment("old") })).rejects.toThrow(
      expect.objectContaining({ code: "unavailable", message: expect.stringContaining(`${old} is 2.9.10, too old`) }),
    );
  });

  test("an old one on the PATH does not hide a recent one behind it", async () => {
    server("old", "2.9.10");
    const recent = server("recent", "2.14.0");
    expect(await findServer({ env: environment("old", "recent") })).toEqual({ path: recent, version: "2.14.0" });
  });

  test("versions are compared as numbers", async () => {
    server("a", "2.9.99");
    const next = server("b", "10.0.0");
    expect(await findServer({ env: environment("a", "b") })).toMatchObject({ path: next });
  });

  test("the PATH goes before the cache, and the cache is enough", async () => {
    const cached = server("cache/bin", "2.15.2");
    expect(await findServer({ env: environment() })).toMatchObject({ path: cached });
    const installed = server("usr", "2.15.1");
    expect(await findServer({ env: environment("usr") })).toMatchObject({ path: installed });
  });

  test("HOLDPOINT_NATS_SERVER goes before all, and is not passed over when it is too old", async () => {
    server("usr", "2.15.1");
    const named = server("own", "2.16.0-preview.1");
    const env = environment("usr");
    expect(await findServer({ env: { ...env, HOLDPOINT_NATS_SERVER: named } })).toEqual({
      path: named,
      version: "2.16.0",
    });
    const old = server("old", "2.12.9");
    await expect(findServer({ env: { ...env, HOLDPOINT_NATS_SERVER: old } })).rejects.toThrow(
      expect.objectContaining({ code: "invalid_request", message: expect.stringContaining("2.12.9") }),
    );
  });

  test("a program that fails or says no version is refused in its own words", async () => {
    script("broken", "nats-server", "echo cannot be linked >&2; exit 127");
    script("mute", "nats-server", "echo hello");
    await expect(findServer({ env: environment("broken", "mute") })).rejects.toThrow(
      /cannot be linked.*does not say its version/,
    );
  });
});

describe("providing a server", () => {
  test("processes that ask at once all get the one in the cache, and nothing else is left there", async () => {
    script("go", "go", goThatBuilds("2.15.2"));
    const said: string[] = [];
    const env = environment("go");
    const provided = await Promise.all(
      [1, 2, 3].map(() => provideServer({ env, onProgress: (line) => said.push(line) })),
    );
    const path = join(root, "cache/bin/nats-server");
    expect(provided).toEqual([1, 2, 3].map(() => ({ path, version: "2.15.2" })));
    expect(readdirSync(join(root, "cache"))).toEqual(["bin"]);
    expect(said).toContain("building nats-server 2.15.2 with Go, a minute or two");
    expect(await provideServer({ env: environment() })).toMatchObject({ path });
  });

  test("where neither Go nor Debian's package works the error says why, and what to type", async () => {
    script("go", "go", "echo no network >&2; exit 1");
    await expect(provideServer({ env: environment("go") })).rejects.toThrow(
      expect.objectContaining({
        code: "unavailable",
        message: expect.stringMatching(
          /no network.*`apt-get` is not on the PATH[^]*brew[^]*choco[^]*archive[^]*docker/,
        ),
      }),
    );
    expect(readdirSync(join(root, "cache"))).toEqual(["bin"]);
  });

  test("a server that turns out too old does not get into the cache", async () => {
    script("go", "go", goThatBuilds("2.10.27"));
    await expect(provideServer({ env: environment("go") })).rejects.toThrow(/2\.10\.27, too old/);
    expect(existsSync(join(root, "cache/bin/nats-server"))).toBe(false);
  });

  test("without Go there is no command line to provide, unless it is installed", async () => {
    mkdirSync(join(root, "empty"));
    expect(await provideCli({ env: environment("empty") })).toBeUndefined();
    const installed = script("usr", "nats", "exit 0");
    expect(await provideCli({ env: environment("usr") })).toBe(installed);
  });
});

/** Fetch and build for real, from the network, into a cache that is empty: `HOLDPOINT_TEST_PROVIDE=1`. */
describe.runIf(process.env["HOLDPOINT_TEST_PROVIDE"] === "1")("providing a server for real", () => {
  const path = process.env["PATH"] ?? "";

  test("Go builds one", { timeout: 900_000 }, async () => {
    const env = { ...process.env, HOLDPOINT_CACHE: join(root, "cache") };
    expect(await provideServer({ env })).toMatchObject({ version: "2.15.2" });
  });

  test("Debian's package is fetched where there is no Go", { timeout: 300_000 }, async () => {
    const withoutGo = path
      .split(":")
      .filter((folder) => !existsSync(join(folder, "go")))
      .join(":");
    const said: string[] = [];
    const env = { ...process.env, PATH: withoutGo, HOLDPOINT_CACHE: join(root, "cache") };
    await provideServer({ env, onProgress: (line) => said.push(line) });
    expect(said).toEqual(["fetching nats-server from Debian's unstable distribution"]);
    expect(readdirSync(join(root, "cache"))).toEqual(["bin"]);
  });
});
