/** The event log, the blobs and the services on NATS JetStream. The only package that knows NATS. */
export type { OnTrouble } from "./append.ts";
export { openBlobs } from "./blobs.ts";
export { connectTo, type ConnectOptions } from "./connect.ts";
export type { Connection, ConnectionStatus, Incoming, RequestOptions, Subscription } from "./connection.ts";
export { type LogOptions, openLog } from "./log.ts";
export { type CommandDraft, publishCommand } from "./publish-command.ts";
export { ensureStream, type StreamOptions } from "./stream.ts";
