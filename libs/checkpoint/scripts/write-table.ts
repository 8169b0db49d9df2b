/** Writes the tables of phases and operations into the documentation. Run with `npm run docs`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withPhaseTables } from "./table.ts";

const path = join(import.meta.dirname, "../../../docs/checkpoints.md");
writeFileSync(path, withPhaseTables(readFileSync(path, "utf8")));
