/** The SDK: makes a server a participant. */
export * from "./admission.ts";
export * from "./agent/index.ts";
export * from "./contents.ts";
export type { ModeChoice } from "./definition.ts";
export * from "./directory.ts";
export * from "./environment/index.ts";
export * from "./hash.ts";
export * from "./latch.ts";
export * from "./log-writer.ts";
export * from "./messenger.ts";
export * from "./participant-options.ts";
export * from "./participant.ts";
export * from "./process.ts";
export * from "./role-spec.ts";
export * from "./rpc-client.ts";
export { type AnyMethod, method, type Method, problemOf, type WhileClosed } from "./rpc-server.ts";
export { foldStamp, loadFold, saveFold, type StampedFold } from "./stamped-fold.ts";
export * from "./stream-clock.ts";
