/**
 * A process to be killed: `node victim.ts <root> snapshot` takes a large snapshot, `… exec` runs a command that never ends.
 * It says `ready` when it is about to.
 */
import { dirProvider } from "@holdpoint/sandbox";

const [, , root = "", what] = process.argv;
const provider = await dirProvider({ root });
const work =
  what === "snapshot"
    ? provider.snapshot("s", "half")
    : provider.exec("s", {
        command: ["sh", "-c", "setsid sleep 1000 & echo $! > stray; sleep 1000 & echo $! > child; wait"],
        timeoutMs: 1_000_000,
      });
process.stdout.write("ready\n");
await work;
process.stdout.write("done\n");
