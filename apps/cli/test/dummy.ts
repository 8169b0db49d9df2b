/** A process of a run that does nothing: says its name, starts a child where it is told to, and stays until it is ended. */
import { spawn } from "node:child_process";

process.stdout.write(
  `${JSON.stringify({ run: process.env["HOLDPOINT_RUN"], restore: process.env["HOLDPOINT_RESTORE"] })}\n`,
);
const code = process.env["DUMMY_EXIT"];
if (code !== undefined) process.exit(Number(code));
if (process.env["DUMMY_CHILD"] === "detached") {
  spawn("sleep", ["1000"], { detached: true, stdio: "ignore" }).unref();
} else if (process.env["DUMMY_CHILD"] === "attached") spawn("sleep", ["1000"], { stdio: "ignore" });
process.once("SIGTERM", () => process.exit(0));
setInterval(() => {}, 60_000);
