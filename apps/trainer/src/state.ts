/**
 * What the trainer knows of its own work: the one thing that is saved, with its place in the log (L12).
 *
 *  1. Weights, version, cursor and what was trained change together, and are saved together. An acknowledgement to the broker
 *     says nothing that counts.
 *  2. The version is the number of groups trained; groups are trained in the order of the plan alone.
 *  3. Which attempt of a rollout counts is not in it: the log says that (`ControlHistory`).
 */
import { initialWeights } from "@holdpoint/repair";
import { Attempt, CheckpointId, Digest, EpisodeStatus, Token } from "@holdpoint/schemas";
import * as z from "zod";

/** The format of the files that this code writes. */
const format = 1;

/** What fixes a run: with another plan the weights would be others. */
export const RunPlan = z.object({
  run: Token,
  seed: z.int().nonnegative(),
  rollouts: z.int().positive(),
  siblings: z.int().positive(),
  policyLag: z.int().nonnegative(),
});
export type RunPlan = z.infer<typeof RunPlan>;

/** How an episode ended, as the stream says at `sequence`. */
export const EpisodeResult = z.object({
  rollout: Token,
  attempt: Attempt,
  status: EpisodeStatus,
  /** null unless `finished`. */
  reward: z.number().nullable(),
  policyVersion: z.int().nonnegative(),
  sequence: z.int().positive(),
});
export type EpisodeResult = z.infer<typeof EpisodeResult>;

const TrainedEpisode = EpisodeResult.pick({ rollout: true, attempt: true, status: true, reward: true });

/** A group that is in the weights. */
export const TrainedGroup = z.object({
  group: Token,
  /** Of the weights that it led to, and the digest of their blob. */
  version: z.int().positive(),
  policy: Digest,
  /** Where the trainer stood in the stream. */
  cursor: z.int().nonnegative(),
  episodes: z.array(TrainedEpisode),
});
export type TrainedGroup = z.infer<typeof TrainedGroup>;

export const TrainerState = z.object({
  format: z.literal(format),
  plan: RunPlan,
  version: z.int().nonnegative(),
  weights: z.array(z.number()),
  /** Every result up to here was looked at. */
  cursor: z.int().nonnegative(),
  /** The digest of the body of the message at the cursor, by which another stream is noticed (L15); null: none was consumed. */
  anchor: Digest.nullable(),
  groups: z.array(TrainedGroup),
  /** Results that wait for their group. */
  pending: z.array(EpisodeResult),
  /** How many checkpoints were begun: the next one's number is one more, whatever became of the others. */
  checkpoints: z.int().nonnegative(),
  /** The ids of its checkpoints that can still be restored, or were begun and may come to be: its own to release. */
  taken: z.array(CheckpointId).default([]),
});
export type TrainerState = z.infer<typeof TrainerState>;

/** Where a run starts. A trainer that has lost its state starts here too: all that it knew is in the log. */
export function firstState(plan: RunPlan): TrainerState {
  return {
    format,
    plan,
    version: 0,
    weights: [...initialWeights()],
    cursor: 0,
    anchor: null,
    groups: [],
    pending: [],
    checkpoints: 0,
    taken: [],
  };
}

/** A message of the result subjects. It may say the ends of several episodes. */
export interface ResultMessage {
  readonly sequence: number;
  /** The digest of its body. */
  readonly anchor: string;
  readonly results: readonly EpisodeResult[];
}

/** The state after a message was consumed. One at or before the cursor changes nothing, nor does a rollout that is trained. */
export function consumed(state: TrainerState, { sequence, anchor, results }: ResultMessage): TrainerState {
  if (sequence <= state.cursor) return state;
  const waiting = results.filter(({ rollout }) => !isTrained(state, rollout));
  return { ...state, cursor: sequence, anchor, pending: [...state.pending, ...waiting] };
}

/** What training a group led to. `policy`: the digest of the blob of `weights`. */
export interface Training {
  readonly group: string;
  readonly results: readonly EpisodeResult[];
  readonly weights: readonly number[];
  readonly policy: string;
}

/** The state after a group was trained: its results are in the weights, and wait no more. */
export function withGroup(state: TrainerState, { group, results, weights, policy }: Training): TrainerState {
  const version = state.version + 1;
  const episodes = results.map(({ rollout, attempt, status, reward }) => ({ rollout, attempt, status, reward }));
  const rollouts = new Set(results.map(({ rollout }) => rollout));
  return {
    ...state,
    version,
    weights: [...weights],
    groups: [...state.groups, { group, version, policy, cursor: state.cursor, episodes }],
    pending: state.pending.filter(({ rollout }) => !rollouts.has(rollout)),
  };
}

/** Whether the rollout is in the weights. */
export function isTrained({ groups }: TrainerState, rollout: string): boolean {
  return groups.some(({ episodes }) => episodes.some((episode) => episode.rollout === rollout));
}
