/** Events, folds over them, the port to the log they rest in, and the timelines in it. Pure. */
export * from "./codec.ts";
export * from "./decider.ts";
export * from "./event-log.ts";
export * from "./memory-log.ts";
export * from "./timeline.ts";
