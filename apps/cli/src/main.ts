#!/usr/bin/env node
import { run } from "@stricli/core";
import { app } from "./app.ts";
import { type CliContext, exitCodes } from "./commands/context.ts";

const terminal: CliContext["process"] = { stdout: process.stdout, stderr: process.stderr };
await run(app, process.argv.slice(2), { process: terminal });
const code = Number(terminal.exitCode ?? exitCodes.failed);
// The parser says by negative numbers that no command came to run.
process.exitCode = code < 0 ? exitCodes.usage : code;
