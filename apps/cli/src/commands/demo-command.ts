import { buildCommand } from "@stricli/core";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runDemo } from "../demo/demo.ts";
import { type ChaosLevel, chaosLevels } from "../demo/schedule.ts";
import { viewOn } from "../demo/view.ts";
import { htmlOf } from "../report/html.ts";
import { jsonOf } from "../report/json.ts";
import type { Summary } from "../report/summary.ts";
import { textOf } from "../report/text.ts";
import { type CliContext, exitCodes, interruption, perform } from "./context.ts";
import * as flags from "./flags.ts";

interface DemoFlags {
  readonly seed: number;
  readonly rollouts: number;
  readonly chaos: ChaosLevel;
  readonly out: string;
  readonly keep: boolean;
  readonly json: boolean;
}

export const demoCommand = buildCommand<DemoFlags, [], CliContext>({
  docs: {
    brief: "Run a workload twice, undisturbed and under kill -9, and compare what came of it",
    fullDescription: [
      "Repairs real npm packages with a small policy that learns: once undisturbed, then with checkpoints, kill -9 of every",
      "process and of everything at once, and a restore. Ends with 0 only if both runs ended the same.",
    ].join("\n"),
  },
  parameters: {
    flags: {
      seed: {
        kind: "parsed",
        parse: flags.wholeNumber(0, 2 ** 32 - 1),
        brief: "Decides tasks, draws and kills",
        default: "1",
        placeholder: "n",
      },
      rollouts: {
        kind: "parsed",
        parse: flags.wholeNumber(4, 4096),
        brief: "How many, a multiple of 4",
        default: "16",
        placeholder: "n",
      },
      chaos: { kind: "enum", values: chaosLevels, brief: "How much is killed", default: "some" },
      out: {
        kind: "parsed",
        parse: String,
        brief: "Where report.json and report.html go",
        default: ".",
        placeholder: "folder",
      },
      keep: { kind: "boolean", brief: "Keep the streams, states and logs", default: false },
      json: flags.json,
    },
  },
  func(options) {
    return perform(this, options, () => demo(this, options));
  },
});

async function demo(context: CliContext, options: DemoFlags): Promise<number> {
  const { seed, rollouts, chaos: level, keep, json, out } = options;
  const view = viewOn(process.stderr);
  const { summary, folder } = await runDemo({ seed, rollouts, level, keep, view, signal: interruption() });
  const page = await writeReport(resolve(out), summary);
  context.process.stdout.write(json ? jsonOf(summary) : textOf(summary));
  if (!json) context.process.stdout.write(`\nreport: ${page}\n`);
  if (folder !== null) view.tell(`streams, states and logs: ${folder}`);
  return summary.equal ? exitCodes.ok : exitCodes.failed;
}

/** @returns the path of the page */
async function writeReport(folder: string, summary: Summary): Promise<string> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "report.json"), jsonOf(summary));
  const page = join(folder, "report.html");
  await writeFile(page, htmlOf(summary));
  return page;
}
