/** The event log, the blobs and the services on NATS JetStream. The only package that knows NATS. */
export type { OnTrouble } from "./append.ts";
export { openBlobs } from "./blobs.ts";
export { connectTo, type ConnectOptions } from "./connect.ts";
export type { Connection, ConnectionStatus, Incoming, RequestOptions, Subscription } from "./connection.ts";
export { type LogOptions, openLog } from "./log.ts";
export { type CommandDraft, publishCommand } from "./publish-command.ts";
export { openSnapshots } from "./snapshots.ts";
export { ensureStream, type StreamOptions } from "./stream.ts";
export { fullness, type PromiseOptions, streamPromise } from "./promise.ts";
export { consumeResults, type ConsumeOptions, type ResultConsumer, type ResultInHand } from "./results.ts";
export { type RunningService, serve, type ServiceEndpoint, type ServiceOptions, type ServiceReply } from "./serve.ts";
