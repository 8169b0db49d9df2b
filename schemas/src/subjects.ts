/**
 * Every subject of a run, built and parsed in this one file. `hp.<run>.` then:
 *
 *   cmd.<op>                                     commands, fire and forget (stream)
 *   outcome.<sequence>                           what became of a command, once (stream)
 *   control                                      what the coordinator decided (stream)
 *   log.<role>.<instance>.<worker>               all that one process has to say (stream)
 *   result.<role>.<instance>.<worker>            finished episodes (stream)
 *   ctl.<op>                                     the same commands as a service (core NATS)
 *   lead.<incarnation>                           whether a coordinator lives (core NATS)
 *   rpc.<rollout>.<attempt>.<role>.<method>      work on a session (core NATS)
 *   rpc.seed.<role>.<instance>                   first seeds (core NATS)
 *
 * `live.` before a stream subject is its copy for pages and watchers (core NATS).
 */
import * as z from "zod";
import { type Episode, Role, type Role as RoleName, Token, type Writer, WriterRole } from "./ids.ts";
import { type Operation, operations } from "./commands.ts";

export function streamName(run: string): string {
  return `HP_${Token.parse(run)}`;
}

export function blobBucket(run: string): string {
  return `HPB_${Token.parse(run)}`;
}

/** A number as a builder writes it, and no other way to write it: one thing has one subject. */
const NumberToken = z
  .string()
  .regex(/^(0|[1-9]\d{0,15})$/)
  .transform(Number)
  .pipe(z.int());

/** The subjects that the run's stream stores. */
export function streamSubjects(run: string): string[] {
  return ["cmd.>", "outcome.>", "control", "log.>", "result.>"].map((tail) => `hp.${Token.parse(run)}.${tail}`);
}

/** Where one part of a blob rests: a stream of its own, not part of the log. */
export function blobSubject(run: string, digest: string, part: number): string {
  return `hpb.${run}.${digest}.${part}`;
}

/** The stream of fold snapshots, which may be thrown away. */
export function snapshotBucket(run: string): string {
  return `HPF_${Token.parse(run)}`;
}

/** Where one part of the latest snapshot under `name` rests. */
export function snapshotSubject(run: string, name: string, part: number): string {
  return `hpf.${run}.${name}.${part}`;
}

export function commandSubject(run: string, operation: Operation): string {
  return `hp.${run}.cmd.${operation}`;
}

export function serviceSubject(run: string, operation: Operation): string {
  return `hp.${run}.ctl.${operation}`;
}

/** Where the coordinator of that incarnation answers for as long as it leads, and nobody else. */
export function leadSubject(run: string, incarnation: string): string {
  return `hp.${run}.lead.${incarnation}`;
}

export function outcomeSubject(run: string, sequence: number): string {
  return `hp.${run}.outcome.${sequence}`;
}

export function controlSubject(run: string): string {
  return `hp.${run}.control`;
}

export function logSubject(run: string, { role, instance, worker }: Writer): string {
  return `hp.${run}.log.${role}.${instance}.${worker}`;
}

export function resultSubject(run: string, { role, instance, worker }: Writer): string {
  return `hp.${run}.result.${role}.${instance}.${worker}`;
}

export function rpcSubject(run: string, { rollout, attempt }: Episode, role: RoleName, method: string): string {
  return `hp.${run}.rpc.${rollout}.${attempt}.${role}.${method}`;
}

export function seedSubject(run: string, role: RoleName, instance: string): string {
  return `hp.${run}.rpc.seed.${role}.${instance}`;
}

/** Filter subjects, with wildcards. Never to be published to, never an expectation. */
export const filters = {
  commands: (run: string) => `hp.${run}.cmd.>`,
  outcomes: (run: string) => `hp.${run}.outcome.*`,
  services: (run: string) => `hp.${run}.ctl.*`,
  logs: (run: string) => `hp.${run}.log.>`,
  logsOf: (run: string, role: string) => `hp.${run}.log.${role}.>`,
  results: (run: string) => `hp.${run}.result.>`,
  rpcOf: (run: string, role: RoleName) => `hp.${run}.rpc.*.*.${role}.*`,
  live: (run: string) => `live.hp.${run}.>`,
};

/** What a subject of the stream is about; `undefined` where it is none of ours, or is malformed. */
export type StreamAddress =
  | { readonly kind: "command"; readonly run: string; readonly operation: Operation | undefined; readonly name: string }
  | { readonly kind: "outcome"; readonly run: string; readonly sequence: number }
  | { readonly kind: "control"; readonly run: string }
  | { readonly kind: "log" | "result"; readonly run: string; readonly writer: Writer };

export function parseStreamSubject(subject: string): StreamAddress | undefined {
  const [root, run = "", kind = "", ...rest] = subject.split(".");
  if (root !== "hp" || !Token.safeParse(run).success) return undefined;
  return streamKinds.get(kind)?.(run, rest);
}

const streamKinds: ReadonlyMap<string, (run: string, rest: readonly string[]) => StreamAddress | undefined> = new Map([
  ["control", (run, rest) => (rest.length === 0 ? { kind: "control", run } : undefined)],
  ["log", (run, rest) => writerAddress("log", run, rest)],
  ["result", (run, rest) => writerAddress("result", run, rest)],
  ["outcome", outcomeAddress],
  ["cmd", (run, rest) => (rest.length === 0 ? undefined : commandAddress(run, rest.join(".")))],
]);

function commandAddress(run: string, name: string): StreamAddress {
  return { kind: "command", run, name, operation: operations.find((known) => known === name) };
}

function writerAddress(kind: "log" | "result", run: string, rest: readonly string[]): StreamAddress | undefined {
  const [role, instance, worker, ...more] = rest;
  const parsed = WriterRole.safeParse(role);
  const tokens = Token.safeParse(instance).success && Token.safeParse(worker).success && more.length === 0;
  if (!parsed.success || !tokens || instance === undefined || worker === undefined) return undefined;
  return { kind, run, writer: { role: parsed.data, instance, worker } };
}

function outcomeAddress(run: string, rest: readonly string[]): StreamAddress | undefined {
  const [token, ...more] = rest;
  const sequence = NumberToken.safeParse(token);
  if (!sequence.success || sequence.data < 1 || more.length > 0) return undefined;
  return { kind: "outcome", run, sequence: sequence.data };
}

/** The parts of an rpc subject: a first seed to an instance, or a method on an episode. */
export type RpcAddress =
  | { readonly kind: "seed"; readonly run: string; readonly role: RoleName; readonly instance: string }
  | {
      readonly kind: "call";
      readonly run: string;
      readonly episode: Episode;
      readonly role: RoleName;
      readonly method: string;
    };

const SeedTokens = z.tuple([z.literal("hp"), Token, z.literal("rpc"), z.literal("seed"), Role, Token]);
const CallTokens = z.tuple([z.literal("hp"), Token, z.literal("rpc"), Token, NumberToken, Role, Token]);

/** What an rpc subject asks for; `undefined` where it is malformed. */
export function parseRpcSubject(subject: string): RpcAddress | undefined {
  const tokens = subject.split(".");
  const seed = SeedTokens.safeParse(tokens);
  if (seed.success) return { kind: "seed", run: seed.data[1], role: seed.data[4], instance: seed.data[5] };
  const call = CallTokens.safeParse(tokens);
  if (!call.success) return undefined;
  const [, run, , rollout, attempt, role, method] = call.data;
  return { kind: "call", run, episode: { rollout, attempt }, role, method };
}
