/** Writes what is generated from the schemas: `json/*.json` and `asyncapi.yaml`. Run with `npm run schemas`. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatedFiles } from "./generate/files.ts";

const folder = import.meta.dirname;

rmSync(join(folder, "json"), { recursive: true, force: true });
mkdirSync(join(folder, "json"));
for (const [path, text] of generatedFiles()) writeFileSync(join(folder, path), text);
