import { openLog } from "@holdpoint/jetstream";
import { controlSubject } from "@holdpoint/schemas";
import { startTestBroker } from "@holdpoint/testing";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test, vi } from "vitest";

const run = promisify(execFile);
const disk = await mkdtemp(join(tmpdir(), "holdpoint-small-disk-"));
const mounted = await run("mount", ["-t", "tmpfs", "-o", "size=6m", "tmpfs", disk]).then(
  () => true,
  () => false, // that needs more rights than the tests have everywhere
);
afterAll(async () => {
  if (mounted) await run("umount", ["--lazy", disk]);
  await rm(disk, { recursive: true });
});

const patient = { timeout: 60_000, interval: 20 };

test.skipIf(!mounted)(
  "[L1] on a full disk appends stop where they are, say so, and go on, once each, when there is room and the server runs anew",
  async () => {
    const broker = await startTestBroker({ storeDir: join(disk, "store") });
    const name = await broker.newRun({ maxBytes: 1_200_000, maxBlobBytes: 100_000 });
    const ballast = join(disk, "ballast");
    await writeFile(ballast, Buffer.alloc(5_600_000));
    const onTrouble = vi.fn();
    const log = openLog(await broker.connectAs("coordinator"), name, { onTrouble });
    const subject = controlSubject(name);
    const appends = 200;
    const appending = (async () => {
      let sequence = 0;
      for (let at = 0; at < appends; at++) {
        const draft = { subject, body: "x".repeat(4096), messageId: `m${at}`, expected: { subject, sequence } };
        const done = await log.append(draft);
        if (!done.stored) throw new Error(`fenced by nobody at ${at}`);
        ({ sequence } = done);
      }
    })();
    await vi.waitFor(
      () => expect(onTrouble).toHaveBeenCalledWith(expect.stringContaining("has to be restarted")),
      patient,
    );
    expect(await log.lastSequence()).toBeLessThan(appends);
    await rm(ballast);
    await broker.server.restart();
    await appending;
    expect(onTrouble).toHaveBeenLastCalledWith(undefined);
    const found: string[] = [];
    await log.read({ upTo: appends }, ({ messageId }) => found.push(messageId));
    expect(found).toEqual(found.map((_, at) => `m${at}`));
    expect(await log.lastSequence()).toBe(appends);
    await broker.stop();
  },
);
