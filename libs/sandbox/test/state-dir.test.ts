import { claimStateDir } from "@holdpoint/sandbox";
import { describe, expect, test } from "vitest";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freshPath } from "./scratch.ts";

const owner = { server: "tools", run: "demo" };

describe("[S19] a state directory", () => {
  test.each(["state", "./state", "../state", ""])("that is relative (%j) is refused", async (path) => {
    await expect(claimStateDir(path, owner)).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("is the same server's in the same run again, also after that server has died", async () => {
    const path = join(freshPath(), "deep");
    await claimStateDir(path, owner);
    await claimStateDir(path, owner);
    expect(readdirSync(path)).toEqual(["owner.json"]);
  });

  test.each([
    ["server", { ...owner, server: "tools2" }],
    ["run", { ...owner, run: "demo2" }],
    ["server in another run", { server: "demo", run: "tools" }],
  ])("is refused to another %s, by name", async (_, other) => {
    const path = freshPath();
    await claimStateDir(path, owner);
    const message = expect.stringContaining("server tools in run demo,");
    await expect(claimStateDir(path, other)).rejects.toMatchObject({ code: "invalid_request", message });
    await claimStateDir(path, owner);
  });

  test("that two servers ask for at once is one server's", async () => {
    const path = freshPath();
    const claims = ["a", "b", "c", "d"].map((server) => claimStateDir(path, { server, run: "demo" }));
    const outcomes = await Promise.allSettled(claims);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test.each(["", "{", "{}"])("whose owner cannot be read (%j) is refused to everybody", async (content) => {
    const path = freshPath();
    mkdirSync(path);
    writeFileSync(join(path, "owner.json"), content);
    await expect(claimStateDir(path, owner)).rejects.toMatchObject({ code: "invalid_request" });
  });
});
