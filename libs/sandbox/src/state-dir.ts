/**
 * Whose a folder of external state is: one server's in one run, for good.
 *
 * `owner.json` is made once, whole or not at all, and never taken over, also when its owner is long dead: two servers, or two
 * runs, never share a folder. Another life of the same server in the same run finds it its own; which of two lives may act
 * is decided by the log, not here.
 */
import { HoldpointError } from "@holdpoint/errors";
import { link, mkdir, open, readFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import * as z from "zod";
import { isSystemError, withTemporary } from "./leftovers.ts";

const Owner = z.object({ server: z.string(), run: z.string() });
export type Owner = z.infer<typeof Owner>;

/**
 * Makes the folder `stateDir` if need be, and claims it.
 *
 * @throws HoldpointError `invalid_request` where it is relative, or another server's or run's
 */
export async function claimStateDir(stateDir: string, { server, run }: Owner): Promise<void> {
  if (!isAbsolute(stateDir)) {
    throw new HoldpointError(
      "invalid_request",
      `stateDir: expected an absolute path, found ${JSON.stringify(stateDir)}`,
    );
  }
  await mkdir(stateDir, { recursive: true });
  const path = join(stateDir, "owner.json");
  await withTemporary(stateDir, async (temporary) => {
    const file = await open(temporary, "wx");
    try {
      await file.writeFile(JSON.stringify({ server, run }));
      await file.sync();
    } finally {
      await file.close();
    }
    await link(temporary, path).catch((error: unknown) => {
      if (!isSystemError(error, "EEXIST")) throw error;
    });
  });
  const owner = await readOwner(path);
  if (owner?.server === server && owner.run === run) return;
  const whose = owner === undefined ? "of nobody that can be read" : `of server ${owner.server} in run ${owner.run}`;
  throw new HoldpointError(
    "invalid_request",
    `stateDir ${stateDir} is that ${whose}, not of server ${server} in run ${run}: give each its own folder`,
  );
}

async function readOwner(path: string): Promise<Owner | undefined> {
  const text = await readFile(path, "utf8");
  try {
    return Owner.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
