/** Writes the table of the session machine into the documentation. Run with `npm run docs`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withSessionTable } from "./table.ts";

const path = join(import.meta.dirname, "../../../docs/sessions.md");
writeFileSync(path, withSessionTable(readFileSync(path, "utf8")));
