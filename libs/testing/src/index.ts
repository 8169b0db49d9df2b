/** What tests of several packages share. */
export * from "./simulated-process.ts";
