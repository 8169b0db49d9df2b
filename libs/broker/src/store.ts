/** The folder of a broker. nats-server does not notice a second one on its store, so we write down who has it. */
import { HoldpointError } from "@holdpoint/errors";
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as z from "zod";
import { serves } from "./launch.ts";

const Owner = z.object({ serverName: z.string(), monitorUrl: z.string() });
type Owner = z.infer<typeof Owner>;

function ownerFile(storeDir: string): string {
  return join(storeDir, "broker.json");
}

/**
 * The folder `storeDir`, made where it is missing; a new temporary one where none is given.
 *
 * @throws HoldpointError `unavailable` where a broker serves from it
 */
export async function openStore(storeDir: string | undefined): Promise<string> {
  if (storeDir === undefined) return mkdtemp(join(tmpdir(), "holdpoint-broker-"));
  await mkdir(storeDir, { recursive: true, mode: 0o700 });
  const owner = await readOwner(storeDir);
  if (owner === undefined || !(await serves(owner.monitorUrl, owner.serverName))) return resolve(storeDir);
  const advice = `stop it, or use it: its monitoring is ${owner.monitorUrl}`;
  throw new HoldpointError("unavailable", `a broker already serves from ${storeDir}; ${advice}`);
}

/** Writes down that `owner` is about to serve from the folder. Who is gone need not be struck out. */
export async function markStore(storeDir: string, owner: Owner): Promise<void> {
  await writeFile(ownerFile(storeDir), `${JSON.stringify(owner)}\n`, { mode: 0o600 });
}

/** Who served from the folder last; `undefined` where nobody did, or the file is torn. */
async function readOwner(storeDir: string): Promise<Owner | undefined> {
  try {
    return Owner.parse(JSON.parse(await readFile(ownerFile(storeDir), "utf8")));
  } catch {
    return undefined;
  }
}
