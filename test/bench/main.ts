/** `npm run bench [append|replay|hold|seeding|steps|turns|memory|checkpoint|takeover …]`: measures, prints Markdown tables, and judges nothing. */
import { cpus } from "node:os";
import { measureAppend } from "./append.ts";
import { measureCheckpoint } from "./checkpoint.ts";
import { measureHold } from "./hold.ts";
import { measureMemory } from "./memory.ts";
import { measureReplay } from "./replay.ts";
import { measureSeeding } from "./seeding.ts";
import { measureSteps } from "./steps.ts";
import { measureTakeover } from "./takeover.ts";
import { measureTurns } from "./turns.ts";

const measurements: Readonly<Record<string, () => Promise<string>>> = {
  append: measureAppend,
  replay: measureReplay,
  hold: measureHold,
  seeding: measureSeeding,
  steps: measureSteps,
  turns: measureTurns,
  memory: measureMemory,
  checkpoint: measureCheckpoint,
  takeover: measureTakeover,
};

const wanted = process.argv.slice(2);
const names = wanted.length === 0 ? Object.keys(measurements) : wanted;
process.stdout.write(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? "unknown"})\n`);
for (const name of names) {
  const measure = measurements[name];
  if (measure === undefined)
    throw new Error(`no measurement ${name}; there are ${Object.keys(measurements).join(", ")}`);
  process.stdout.write(`\n## ${name}\n\n${await measure()}\n`);
}
