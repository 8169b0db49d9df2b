/** The command `holdpoint`. */
import { type Application, buildApplication, buildRouteMap } from "@stricli/core";
import type { CliContext } from "./commands/context.ts";
import { demoCommand } from "./commands/demo-command.ts";
import { doctorCommand } from "./commands/doctor-command.ts";
import { operationCommands } from "./commands/operation-commands.ts";
import { upCommand } from "./commands/up-command.ts";

const routes = buildRouteMap<string, CliContext>({
  routes: { demo: demoCommand, up: upCommand, doctor: doctorCommand, ...operationCommands },
  docs: { brief: "Checkpoint and restore for long-running RL rollouts" },
});

export const app: Application<CliContext> = buildApplication(routes, {
  name: "holdpoint",
  scanner: { caseStyle: "allow-kebab-for-camel" },
  documentation: { caseStyle: "convert-camel-to-kebab", disableAnsiColor: true },
});
