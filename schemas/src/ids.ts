/** The ids of the protocol. All but checkpoint ids are subject tokens, so that a subject is built from them as they are. */
import * as z from "zod";

/** 1 to 128 of `A-Z a-z 0-9 _ -`: one token of a subject. */
export const Token = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/, "expected 1 to 128 of A-Z a-z 0-9 _ -");

/** 1 to 128 of `A-Z a-z 0-9 . _ -`, the first alphanumeric. Never part of a subject. */
export const CheckpointId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "expected 1 to 128 of A-Z a-z 0-9 . _ -, the first a letter or a digit");

/** 0 for the first dispatch of a rollout, one more for each that follows. */
export const Attempt = z.int().nonnegative();

/** The roles that hold state of episodes, in the order in which they are prepared. */
export const roles = ["environment", "model", "agent", "resources"] as const;
export const Role = z.enum(roles);
export type Role = z.infer<typeof Role>;

/** Whoever has a log subject: the participants, and the trainer, which is none. */
export const WriterRole = z.enum([...roles, "trainer"]);
export type WriterRole = z.infer<typeof WriterRole>;

/** Lower-case hexadecimal SHA-256 of the UTF-8 bytes of a text. */
export const Digest = z.string().regex(/^[0-9a-f]{64}$/, "expected 64 lower-case hexadecimal digits");
export type Digest = z.infer<typeof Digest>;

/** One rollout in one attempt: what a session, a retirement or a scope is about. */
export const Episode = z.object({ rollout: Token, attempt: Attempt });
export type Episode = z.infer<typeof Episode>;

/** One participant: a role and an instance; it may consist of several workers. */
export const ParticipantId = z.object({ role: Role, instance: Token });
export type ParticipantId = z.infer<typeof ParticipantId>;

/** One process: a worker of an instance, and the only writer of its log subject. */
export const Writer = z.object({ role: WriterRole, instance: Token, worker: Token });
export type Writer = z.infer<typeof Writer>;

/** Milliseconds from now, as a participant bounds its own work by them. */
export const RemainingMs = z.int().nonnegative();

/** A position in each stream that a cut spans: stream name to the last sequence that belongs to it. */
export const Cut = z.record(z.string(), z.int().nonnegative());
export type Cut = z.infer<typeof Cut>;
