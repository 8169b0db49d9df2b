/** Starts one process of a run, says its id, and stays; whoever kills it must find the other gone too. */
import { fileURLToPath } from "node:url";
import { ManagedProcess } from "../src/run/managed-process.ts";
import { ProcessGuard } from "../src/run/process-guard.ts";

const managed = new ManagedProcess({
  name: "agent",
  program: fileURLToPath(new URL("dummy.ts", import.meta.url)),
  env: { PATH: process.env["PATH"] ?? "" },
  logFile: "/dev/null",
  guard: new ProcessGuard(),
  onExit: () => {},
});
await managed.start();
process.stdout.write(`${managed.pid}\n`);
setInterval(() => {}, 60_000);
