/** The broker of a test file, who is connected to it, and the processes of a test: all ended after it. */
import { brokerEnvironment, type BrokerUser, type RunningBroker, startBroker } from "@holdpoint/broker";
import { type Connection, connectTo } from "@holdpoint/jetstream";
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll } from "vitest";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
/** A bound against hanging, never a measure. */
export const patience = { timeout: 60_000, interval: 5 };

let broker: RunningBroker;
/** Run after each test, the latest first. */
export const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  broker = await startBroker();
});
afterAll(() => broker.stop());
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

export interface ServerProcess {
  readonly child: ChildProcess;
  output(): string;
  /** Resolves with the exit code once it has ended; null: killed. */
  readonly exited: Promise<number | null>;
}

export function startProcess(
  env: Record<string, string>,
  { program = main, user = "resources" }: { readonly program?: string; readonly user?: BrokerUser } = {},
): ServerProcess {
  const known = { ...brokerEnvironment(broker, user), HOLDPOINT_MONITOR_URL: broker.monitorUrl };
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env["PATH"] ?? "", ...known, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  cleanups.push(() => {
    child.kill("SIGKILL");
    return exited;
  });
  return { child, output: () => output, exited };
}

export async function connectAs(user: BrokerUser): Promise<Connection> {
  const { user: name, password } = broker.credentialsOf(user);
  const connection = await connectTo({ url: broker.url, name: `test ${user}`, user: name, password });
  cleanups.push(() => connection.close());
  return connection;
}
