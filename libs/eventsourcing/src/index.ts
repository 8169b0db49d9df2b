/** Events, the port to the log that they rest in, and the timelines in it. Pure. */
export * from "./codec.ts";
export * from "./event-log.ts";
export * from "./memory-log.ts";
export * from "./timeline.ts";
