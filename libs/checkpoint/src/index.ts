/** Checkpoints as pure decisions: what the coordinator asks, what stands, what a participant may do meanwhile. */
export * from "./participant.ts";
