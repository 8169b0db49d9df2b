/** Starts that come to nothing, as whoever supervises the process sees them. */
import { HoldpointError } from "@holdpoint/errors";
import { streamMade } from "@holdpoint/participant";
import { startTestBroker, type TestBroker } from "@holdpoint/testing";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

const program = fileURLToPath(new URL("fixtures/start.ts", import.meta.url));
const straying = fileURLToPath(new URL("fixtures/stray.ts", import.meta.url));
let broker: TestBroker;
let run: string;

beforeAll(async () => {
  broker = await startTestBroker();
  run = await broker.newRun();
});
afterAll(() => broker.stop());

function credentialsOf(user: "agent" | "model"): Record<string, string> {
  const { password } = broker.server.credentialsOf(user);
  return { NATS_USER: user, NATS_PASSWORD: password };
}

/** Runs an agent to its end. */
async function agent(settings: Readonly<Record<string, string>>, file = program) {
  const env = { NATS_URL: broker.server.url, HOLDPOINT_RUN: run, ...credentialsOf("agent"), ...settings };
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (printed += String(data)));
  const [code] = await once(child, "close");
  return { code, printed };
}

test.each([
  ["a wrong password", { NATS_PASSWORD: "not-the-password" }, "Authorization Violation"],
  ["the credentials of another role", () => credentialsOf("model"), "hp."],
])("%s ends a process with 2, and one line of JSON that says so", async (_, given, words) => {
  const { code, printed } = await agent(typeof given === "function" ? given() : given);

  expect(code).toBe(2);
  expect(printed.trim().split("\n")).toHaveLength(1);
  expect(JSON.parse(printed)).toMatchObject({
    service: "agent",
    run,
    code: "unauthorized",
    msg: expect.stringMatching(new RegExp(`cannot start.*${words}.*check the user, its password`)),
  });
});

test("wrong settings end a process with 2, in words", async () => {
  const { code, printed } = await agent({ HOLDPOINT_RUN: "a.b", LOG_LEVEL: "loud" });

  expect(code).toBe(2);
  expect(printed).toMatch(/HOLDPOINT_RUN[^]*LOG_LEVEL/);
});

test("what nobody catches, and is no author's, ends a process with 1, and one line of JSON that says what", async () => {
  const { code, printed } = await agent({}, straying);

  expect(code).toBe(1);
  expect(printed.trim().split("\n")).toHaveLength(1);
  expect(JSON.parse(printed)).toMatchObject({ service: "agent", run, err: { message: "a bug of ours" } });
});

/** A stream that is there from a look on, and what is said until then. */
function streamThereAt(look: number) {
  const said: unknown[] = [];
  let looks = 0;
  const lastSequence = async () => {
    looks += 1;
    if (looks < look) throw new HoldpointError("not_found", "no such stream");
    return 0;
  };
  const logger = { warn: (...line: unknown[]) => void said.push(line) };
  return { log: { stream: "HP_later", lastSequence }, logger, said };
}

test("a stream that is not there yet is waited for, with a word at once and again now and then", async () => {
  const { log, logger, said } = streamThereAt(8);
  await streamMade(log, logger, { pauseMs: 0, looksPerWord: 3 });

  const line = [expect.objectContaining({ stream: "HP_later" }), expect.stringContaining("waits for the run's stream")];
  expect(said).toEqual([line, line, line]);
});

test("nothing is said of a stream that is there, and one that never comes is given up", async () => {
  const there = streamThereAt(1);
  await streamMade(there.log, there.logger);
  expect(there.said).toEqual([]);

  const never = streamThereAt(Number.POSITIVE_INFINITY);
  const waiting = streamMade(never.log, never.logger, { pauseMs: 0, patienceMs: 0 });
  await expect(waiting).rejects.toMatchObject({ code: "not_found" });
});
