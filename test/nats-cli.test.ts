/** The documented one-liners, run with the real `nats` command line against a system that is up. */
import { provideCli } from "@holdpoint/broker";
import { Outcome } from "@holdpoint/schemas";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { startSystem, type System } from "./system.ts";

const nats = await provideCli();
const PubAck = z.object({ stream: z.literal("HP_demo"), seq: z.int().positive() });

/** The lines of the documents' shell examples that call `nats`. */
function documented(file: string): readonly string[] {
  const blocks = readFileSync(file, "utf8").match(/```sh\n[\s\S]*?```/g) ?? [];
  return blocks.flatMap((block) => block.split("\n")).filter((line) => line.startsWith("nats "));
}

/** The words of a documented line, as a shell would part them: quotes are taken off, a comment is dropped. */
function words(line: string): readonly string[] {
  const [command = ""] = line.split(/\s#\s/);
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? "");
}

describe.skipIf(nats === undefined)("the nats command line", () => {
  let system: System;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    system = await startSystem();
    env = { ...process.env, ...system.environmentOf("operator") };
  });

  afterAll(async () => {
    await system.stop();
  });

  /** Runs the command line. @returns what it printed, on both outputs */
  async function run(...args: readonly string[]): Promise<string> {
    const { stdout, stderr } = await promisify(execFile)(nats ?? "nats", [...args], { env });
    return `${stdout}${stderr}`;
  }

  async function request(subject: string, body: object): Promise<unknown> {
    return JSON.parse(await run("--timeout", "40s", "req", "--raw", subject, JSON.stringify(body)));
  }

  test("`nats req` of a command as a service answers with its outcome", async () => {
    const prepared = Outcome.parse(await request("hp.demo.ctl.prepare", { checkpointId: "n1", timeoutMs: 30_000 }));
    expect(prepared).toMatchObject({ ok: true, operation: "prepare", result: { phase: "prepared", ready: true } });
    const resumed = Outcome.parse(await request("hp.demo.ctl.resume", { checkpointId: "n1", timeoutMs: 30_000 }));
    expect(resumed).toMatchObject({ ok: true, operation: "resume", result: { phase: "idle" } });
  });

  test("a command that is only published is acknowledged by the stream, and its outcome is read back by its sequence", async () => {
    const { seq } = PubAck.parse(await request("hp.demo.cmd.checkpoint", { checkpointId: "n2", timeoutMs: 30_000 }));
    await request("hp.demo.ctl.status", {}); // commands are answered in order of acceptance, this one at once
    const outcome = await readBack(seq);
    expect(outcome).toMatchObject({ ok: true, command: seq, operation: "checkpoint" });
  });

  /** The outcome of the command at `seq`, once it is there. */
  async function readBack(seq: number): Promise<Outcome> {
    for (;;) {
      const text = await run("stream", "get", "HP_demo", "--last-for", `hp.demo.outcome.${seq}`, "--json").catch(
        () => "",
      );
      const found = z.object({ data: z.base64() }).safeParse(text === "" ? undefined : JSON.parse(text));
      if (found.success) return Outcome.parse(JSON.parse(Buffer.from(found.data.data, "base64").toString("utf8")));
    }
  }

  test("`nats pub` of a malformed command leaves a typed refusal in the log, and the next one is obeyed", async () => {
    const { seq } = PubAck.parse(await request("hp.demo.cmd.prepare", { checkpoint: "no such field" }));
    expect(await readBack(seq)).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
    await run("pub", "hp.demo.cmd.prepare", "{not json");
    await run("pub", "hp.demo.cmd.nonsense", "{}");
    expect(await request("hp.demo.ctl.status", {})).toMatchObject({ ok: true });
  });

  test("`nats micro ls` shows the coordinator", async () => {
    expect(await run("micro", "ls")).toContain("holdpoint-coordinator");
  });

  test.each(
    ["README.md", "docs/operators.md"].flatMap((file) => documented(file).map((line) => [file, line] as const)),
  )("%s says `%s`, and it works", async (_file, line) => {
    const [, ...args] = words(line);
    const known = args.map((arg) => arg.replace(/outcome\.\d+$/, "outcome.1"));
    const printed = await run(...known).catch((error: unknown) => String(error));
    const expected = args.includes("get") ? /no message found|Item:/ : /"ok":|Published|"seq":|holdpoint-coordinator/;
    expect(printed).toMatch(expected);
  });
});
