export { type Broker, brokerEnvironment, useBroker } from "./broker.ts";
export type { Environment } from "./command.ts";
export { type BrokerUser, brokerUsers, type Credentials, type Passwords } from "./credentials.ts";
export { findServer, type FindOptions, type ServerProgram } from "./find.ts";
export type { Ports } from "./ports.ts";
export { provideCli, provideServer, type ProvideOptions } from "./provide.ts";
export { RunningBroker } from "./running-broker.ts";
export { startBroker, type StartOptions } from "./start.ts";
export { minimumServerVersion } from "./version.ts";
