export { Final } from "../src/state-dir.ts";
