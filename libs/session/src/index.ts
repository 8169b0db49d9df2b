/** The lifecycle of a session, and the fold that rebuilds the sessions of a process from its log. Pure. */
export * from "./machine.ts";
export type { SessionEvent } from "./session-data.ts";
export * from "./session-fold.ts";
