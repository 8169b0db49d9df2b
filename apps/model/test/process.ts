/** The model server as the process that it is, on a real broker. */
import type { EventLog } from "@holdpoint/eventsourcing";
import { openLog } from "@holdpoint/jetstream";
import type { TestBroker } from "@holdpoint/testing";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { vi } from "vitest";
import { Control } from "./control.ts";
import { script } from "./room.ts";

const modelProgram = fileURLToPath(new URL("../src/main.ts", import.meta.url));
/** A bound against hanging, never a measure. */
const patience = { timeout: 60_000, interval: 10 };

export class Process {
  readonly child: ChildProcess;
  output = "";

  constructor(program: string, env: Readonly<Record<string, string>>) {
    const { PATH = "" } = process.env;
    this.child = spawn(process.execPath, [program], { env: { PATH, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (chunk: Buffer) => void (this.output += chunk.toString()));
    }
  }

  async says(phrase: RegExp): Promise<RegExpExecArray> {
    return vi.waitFor(() => {
      const found = phrase.exec(this.output);
      if (found === null) throw new Error(`${phrase.source} was not said: ${this.output}`);
      return found;
    }, patience);
  }

  /** The code with which it ends, or the signal. */
  async ended(): Promise<number | string> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
    return this.child.exitCode ?? this.child.signalCode ?? "";
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<number | string> {
    this.child.kill(signal);
    return this.ended();
  }
}

/** A run on a broker, with a model server that can be killed. */
export class ModelRun {
  readonly run: string;
  readonly log: EventLog;
  readonly control: Control;
  readonly processes: Process[] = [];
  readonly #broker: TestBroker;
  readonly #folder: string;

  private constructor(broker: TestBroker, run: string, parts: { readonly log: EventLog; readonly folder: string }) {
    this.#broker = broker;
    this.run = run;
    this.log = parts.log;
    this.control = new Control(parts.log, run);
    this.#folder = parts.folder;
  }

  static async open(broker: TestBroker): Promise<ModelRun> {
    const run = await broker.newRun();
    const folder = await mkdtemp(join(tmpdir(), "holdpoint-model-"));
    await writeFile(join(folder, "script.json"), JSON.stringify(script));
    return new ModelRun(broker, run, { log: openLog(await broker.connectAs("coordinator"), run), folder });
  }

  environmentOf(role: "model" | "coordinator", extra: Readonly<Record<string, string>> = {}): Record<string, string> {
    const { user, password } = this.#broker.server.credentialsOf(role);
    return {
      HOLDPOINT_RUN: this.run,
      HOLDPOINT_SCRIPT_FILE: join(this.#folder, "script.json"),
      HOLDPOINT_MONITOR_URL: this.#broker.server.monitorUrl,
      LOG_LEVEL: "debug",
      NATS_URL: this.#broker.server.url,
      NATS_USER: user,
      NATS_PASSWORD: password,
      ...extra,
    };
  }

  /** Starts a process, which `stop` ends. */
  spawn(program: string, env: Readonly<Record<string, string>>): Process {
    const started = new Process(program, env);
    this.processes.push(started);
    return started;
  }

  /** Program and environment of a model server. */
  commandWith(extra: Readonly<Record<string, string>>): [string, Record<string, string>] {
    return [modelProgram, this.environmentOf("model", extra)];
  }

  /** Starts the model server; returns when it serves, with where. */
  async start(
    extra: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly url: string; readonly process: Process }> {
    const started = this.spawn(...this.commandWith(extra));
    const [, url = ""] = await started.says(/"url":"([^"]+)"[^\n]*model serves/);
    return { url, process: started };
  }

  async stop(): Promise<void> {
    await Promise.all(this.processes.map((started) => started.kill()));
    await rm(this.#folder, { recursive: true });
  }
}
