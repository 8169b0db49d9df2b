/**
 * A process that is killed: `node victim.ts <root> snapshot` kills itself halfway through a snapshot, `… exec` runs a command
 * that never ends.
 */
import { dirProvider } from "@holdpoint/sandbox";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";

const [, , root = "", what] = process.argv;
const provider = await dirProvider({ root });
if (what === "snapshot") {
  const snapshots = join(root, "snapshots");
  const isHalfway = () => readdirSync(snapshots).some((name) => existsSync(join(snapshots, name, "tree/f0")));
  const work = provider.snapshot("s", "half");
  while (!isHalfway()) await setImmediate(); // the copy lets others have their turn after every hundred files
  process.kill(process.pid, "SIGKILL");
  await work;
} else {
  const script = "setsid sleep 1000 & echo $! > stray; sleep 1000 & echo $! > child; wait";
  await provider.exec("s", { command: ["sh", "-c", script], timeoutMs: 1_000_000 });
}
