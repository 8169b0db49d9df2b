/** What this machine, and the broker that is named, have to offer. */
import { findServer, minimumServerVersion, useBroker } from "@holdpoint/broker";
import { HoldpointError } from "@holdpoint/errors";
import { type Connection, streamPromise } from "@holdpoint/jetstream";
import { streamName, type StreamPromise } from "@holdpoint/schemas";
import { statfs } from "node:fs/promises";
import { workFolderParent } from "../run/work-folder.ts";
import { connectAsOperator } from "./controlling.ts";

export interface Finding {
  readonly ok: boolean;
  readonly what: string;
  /** What was found; where it is not good, also what to do. */
  readonly found: string;
}

const minimumNode = 24;
const roomBytes = 2 ** 30;
const mebibyte = 2 ** 20;

/** What a run needs: of this machine, and, where `NATS_URL` names a broker, of it and of the run's stream. */
export async function examine(run: string): Promise<readonly Finding[]> {
  const broker = useBroker();
  const remote = broker === undefined ? [] : await examineBroker(run, broker.monitorUrl);
  return [node(), await server(broker !== undefined), await room(), ...remote];
}

function node(): Finding {
  const [major = 0] = process.versions.node.split(".").map(Number);
  const ok = major >= minimumNode;
  return { ok, what: "Node", found: ok ? process.versions.node : `${process.versions.node}: ${minimumNode} is needed` };
}

/** Where a broker is named none has to be started here. */
async function server(isOptional: boolean): Promise<Finding> {
  const what = "nats-server";
  try {
    const { path, version } = await findServer();
    return { ok: true, what, found: `${version} at ${path}` };
  } catch (error) {
    const advice = `\`holdpoint up\` and \`holdpoint demo\` fetch one of ${minimumServerVersion} or later where they can`;
    return { ok: isOptional, what, found: `${wordsOf(error)}; ${advice}` };
  }
}

async function room(): Promise<Finding> {
  const parent = await workFolderParent();
  const { bavail, bsize } = await statfs(parent);
  const free = bavail * bsize;
  const found = `${Math.floor(free / mebibyte)} MiB are free in ${parent}`;
  return {
    ok: free >= roomBytes,
    what: "room",
    found: free >= roomBytes ? found : `${found}: make some, or set TMPDIR`,
  };
}

async function examineBroker(run: string, monitorUrl: string | undefined): Promise<readonly Finding[]> {
  let connection: Connection;
  try {
    connection = await connectAsOperator();
  } catch (error) {
    return [{ ok: false, what: "broker", found: wordsOf(error) }];
  }
  try {
    const reached = { ok: true, what: "broker", found: `nats-server ${connection.serverVersion}` };
    return [reached, ...(await examineStream(connection, run, monitorUrl))];
  } finally {
    await connection.close();
  }
}

async function examineStream(
  connection: Connection,
  run: string,
  monitorUrl: string | undefined,
): Promise<readonly Finding[]> {
  const what = `stream ${streamName(run)}`;
  try {
    const promise = await streamPromise(connection, run, monitorUrl === undefined ? {} : { monitorUrl });
    return [
      { ok: true, what, found: `${promise.replicas} replicas, persist mode ${promise.persistMode}` },
      sync(promise),
    ];
  } catch (error) {
    if (!HoldpointError.is(error, "not_found")) return [{ ok: false, what, found: wordsOf(error) }];
    return [{ ok: true, what, found: "not there yet: the coordinator makes it" }];
  }
}

function sync({ syncAlways }: StreamPromise): Finding {
  const what = "written to disk before it is acknowledged";
  if (syncAlways === true) return { ok: true, what, found: "always" };
  const found =
    syncAlways === false ? "no: set sync_interval to always, as nats.conf does" : "unknown: set NATS_MONITOR_URL";
  return { ok: false, what, found };
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
