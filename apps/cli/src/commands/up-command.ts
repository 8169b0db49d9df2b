import { type BrokerUser, brokerEnvironment } from "@holdpoint/broker";
import { buildCommand } from "@stricli/core";
import { statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type RunningUp, up } from "../run/up.ts";
import { settingsFrom } from "../run/up-settings.ts";
import { type CliContext, exitCodes, interruption, perform } from "./context.ts";
import * as flags from "./flags.ts";

interface UpFlags {
  readonly run: string;
  readonly folder?: string;
  readonly port?: number;
  readonly environment?: string;
  readonly agent?: string;
  readonly resources?: string;
  readonly model?: string;
  readonly json: boolean;
}

/** @throws where there is no such file */
function existing(path: string): string {
  const file = resolve(path);
  if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return file;
  throw new Error(`no file ${file}; expected a program that Node runs`);
}

/** A participant of one's own. */
function program(role: string) {
  return {
    kind: "parsed",
    parse: existing,
    optional: true,
    brief: `A program of yours that is the ${role}, in the place of ours`,
    placeholder: "file",
  } as const;
}

export const upCommand = buildCommand<UpFlags, [], CliContext>({
  docs: {
    brief: "Start a broker, a coordinator and the participants of a run, until Ctrl-C",
    fullDescription: "No trainer is started: the run waits for work, and for commands.",
  },
  parameters: {
    flags: {
      run: flags.run,
      folder: {
        kind: "parsed",
        parse: String,
        optional: true,
        brief: "Where its log and its state stay; absent: they go with it",
        placeholder: "folder",
      },
      port: {
        kind: "parsed",
        parse: flags.wholeNumber(1, 65_535),
        optional: true,
        brief: "Of the broker; absent: a free one",
        placeholder: "n",
      },
      environment: program("environment"),
      agent: program("agent"),
      resources: program("resources server"),
      model: program("model server"),
      json: flags.json,
    },
  },
  func(options) {
    const { stdout, stderr } = this.process;
    const tell = (sentence: string): void => {
      stderr.write(`${sentence}\n`);
    };
    const signal = interruption();
    const ready = async (running: RunningUp) => {
      const files = await writeEnvironments(running);
      stdout.write(options.json ? jsonOf(running, files) : textOf(running, files));
    };
    return perform(this, options, async () => {
      const { settings, unused } = settingsFrom(process.env);
      if (unused.length > 0) tell(`no process of \`up\` is told what is set as ${unused.join(", ")}`);
      const { environment, agent, resources, model, ...rest } = options;
      await up({ ...rest, programs: { environment, agent, resources, model }, settings, signal, ready, tell });
      return exitCodes.ok;
    });
  },
});

interface EnvironmentFiles {
  readonly operator: string;
  readonly trainer: string;
}

/** Files that a shell reads with `.`, so that nobody has to type passwords. Only their owner can read them. */
async function writeEnvironments({ run, folder, broker, trainerDir }: RunningUp): Promise<EnvironmentFiles> {
  const write = async (user: BrokerUser, more: Readonly<Record<string, string>>): Promise<string> => {
    const path = join(folder, `${user}.env`);
    const variables = { ...brokerEnvironment(broker, user), HOLDPOINT_RUN: run, ...more };
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'\n`);
    await writeFile(path, lines.join(""), { mode: 0o600 });
    return path;
  };
  return {
    operator: await write("operator", {}),
    trainer: await write("trainer", { HOLDPOINT_STATE_DIR: trainerDir }),
  };
}

function jsonOf({ run, folder, broker }: RunningUp, files: EnvironmentFiles): string {
  const { url, wsUrl, monitorUrl } = broker;
  return `${JSON.stringify({ run, folder, url, wsUrl, monitorUrl, environments: files })}\n`;
}

function textOf({ run, folder, broker }: RunningUp, files: EnvironmentFiles): string {
  const trainer = fileURLToPath(new URL("../../../trainer/src/main.ts", import.meta.url));
  return `The run ${run} is up, at ${broker.url}, until Ctrl-C. Its log and its state are in ${folder}.

In another terminal, in the repository's folder:

  . ${files.operator}
  npx holdpoint status --run ${run}
  npx holdpoint checkpoint --run ${run} --checkpoint c1

or, anywhere, with the nats command line, which needs nothing of ours:

  . ${files.operator}
  nats req hp.${run}.ctl.status '{}'
  nats --timeout 40s req hp.${run}.ctl.prepare '{"checkpointId":"c2","timeoutMs":30000}'
  nats --timeout 40s req hp.${run}.ctl.resume '{"checkpointId":"c2","timeoutMs":30000}'
  nats sub 'live.hp.${run}.>'

To give it work, start a trainer:

  (. ${files.trainer}; ${process.execPath} ${trainer})
`;
}
