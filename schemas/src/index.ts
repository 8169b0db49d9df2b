/** The wire contract of Holdpoint: everything that travels or rests. */
export * from "./commands.ts";
export * from "./content.ts";
export * from "./control-events.ts";
export * from "./envelope.ts";
export * from "./ids.ts";
export * from "./outcome.ts";
export * from "./participant-events.ts";
export * from "./role-events.ts";
export * from "./rpc.ts";
export * from "./subjects.ts";
