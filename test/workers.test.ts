/** An agent of two workers, each a process, in a whole run: one of them is lost for good, and the other goes on with its sessions. */
import { startBroker } from "@holdpoint/broker";
import { Controller } from "@holdpoint/client";
import { decodeEvents, type EventLog, eventSchema } from "@holdpoint/eventsourcing";
import { connectTo, ensureStream, openLog } from "@holdpoint/jetstream";
import { ControlEvent, controlSubject } from "@holdpoint/schemas";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { expect, onTestFinished, test } from "vitest";
import { ManagedProcess } from "../apps/cli/src/run/managed-process.ts";
import { ProcessGuard } from "../apps/cli/src/run/process-guard.ts";
import { processNames, RunProcesses } from "../apps/cli/src/run/run-processes.ts";

const run = "workers";
const controlEvents = eventSchema(ControlEvent);
const servants = processNames.filter((name) => name !== "trainer");

interface Stage {
  readonly processes: RunProcesses;
  readonly second: ManagedProcess;
  readonly log: EventLog;
  readonly controller: Controller;
  /** Settles when the trainer ends by itself. */
  readonly trained: Promise<void>;
}

/** Everything of a run but its trainer, with a second worker of the agent; gone when the test is over. */
async function stage(): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), "holdpoint-workers-"));
  const broker = await startBroker({ storeDir: join(folder, "nats") });
  const guard = new ProcessGuard();
  const trained = Promise.withResolvers<void>();
  trained.promise.catch(() => {}); // the test that waits for it is told
  const onExit = ({
    process,
    cause,
    code,
    lastWords,
  }: Parameters<ConstructorParameters<typeof RunProcesses>[0]["onExit"]>[0]) => {
    if (process !== "trainer" || cause !== "own") return;
    if (code === 0) trained.resolve();
    else trained.reject(new Error(lastWords));
  };
  const settings = { trainer: { HOLDPOINT_SEED: "3", HOLDPOINT_ROLLOUTS: "8", HOLDPOINT_CHECKPOINT_EVERY_MS: "500" } };
  const mark = randomBytes(8).toString("hex");
  const processes = new RunProcesses({ run, folder, broker, guard, mark, settings, onExit });
  await processes.prepare();
  const env = { ...processes.environmentOf("agent"), HOLDPOINT_WORKER: "1" };
  const program = new URL("../apps/agent/src/main.ts", import.meta.url).pathname;
  const logFile = join(folder, "logs", "agent-1.log");
  const second = new ManagedProcess({ name: "agent-1", program, env, logFile, guard, onExit });
  const connection = await connectTo({ url: broker.url, ...broker.credentialsOf("coordinator"), name: "test" });
  onTestFinished(async () => {
    await connection.close();
    guard.close();
    await broker.stop();
    await rm(folder, { recursive: true, force: true });
  });
  await ensureStream(connection, run);
  for (const name of servants) await processes.of(name).start();
  await second.start();
  const log = openLog(connection, run);
  return { processes, second, log, controller: new Controller({ connection, log, run }), trained: trained.promise };
}

/** The first control event that `wanted` takes. */
async function decided<T>(log: EventLog, wanted: (event: ControlEvent) => T | undefined): Promise<T> {
  const found = Promise.withResolvers<T>();
  const tail = await log.tail({ from: 1, subjects: [controlSubject(run)] }, (message) => {
    for (const { event } of decodeEvents(message, controlEvents).events) {
      const value = wanted(event);
      if (value !== undefined) found.resolve(value);
    }
  });
  const value = await found.promise;
  await tail.stop();
  return value;
}

async function weights(processes: RunProcesses): Promise<string> {
  const text = await readFile(join(processes.stateDir("trainer"), "final.json"), "utf8");
  return z.object({ weightsDigest: z.string() }).parse(JSON.parse(text)).weightsDigest;
}

/** The trainer's end with both workers, and nothing lost. */
async function uninterrupted(): Promise<string> {
  const { processes, trained } = await stage();
  await processes.of("trainer").start();
  await trained;
  return weights(processes);
}

test("[A19] a worker that is lost for good with everything else is removed, and the rollouts that it had go on elsewhere", async () => {
  const expected = await uninterrupted();
  const { processes, second, log, controller, trained } = await stage();
  await processes.of("trainer").start();
  const split = new Set<string>(); // checkpoints for which each worker held something
  const tooEarly = trained.then(() => Promise.reject(new Error("the run ended before both workers held something")));
  const saved = decided(log, ({ type, data }) => {
    if (type === "checkpoint.committed") {
      const held = data.holdings.filter(({ role, sessions }) => role === "agent" && sessions > 0);
      if (held.length === 2) split.add(data.checkpointId);
    }
    // The trainer releases once it has saved a checkpoint of its own.
    return type === "checkpoint.releasing" ? data.kept.find((id) => split.has(id)) : undefined;
  });
  await Promise.race([saved, tooEarly]);
  second.kill();
  await Promise.all([second.exited(), processes.killAll()]);
  for (const name of servants) await processes.of(name).start();
  const outcome = await controller.command({
    operation: "remove",
    role: "agent",
    instance: "main",
    worker: "1",
    timeoutMs: 60_000,
  });
  expect(outcome).toMatchObject({ ok: true });
  await processes.of("trainer").start({ HOLDPOINT_RESTORE: "latest" });
  await trained;
  const installed = await decided(log, (event) => (event.type === "restore.installed" ? event.data : undefined));
  expect(installed.receipt.filter(({ adoptedBy }) => adoptedBy !== undefined)).toMatchObject([
    { role: "agent", instance: "main", worker: "1", adoptedBy: "0" },
  ]);
  expect(await weights(processes)).toBe(expected);
});
