/**
 * Learning from one group: what is staged for its rows, and the step of the weights that follows.
 *
 *  1. Only finished episodes teach. One that failed, timed out or was cancelled is an outcome of its own and is left out of
 *     the group's advantage: it is no reward of zero.
 *  2. Nothing is learnt from half an episode: one that lacks a row, or what was staged for it, is incomplete.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { BlobStore } from "@holdpoint/eventsourcing";
import { defaultLearningRate, reinforce, type TrainedRollout } from "@holdpoint/repair";
import type { Episode } from "@holdpoint/schemas";
import * as z from "zod";
import { isTorn, type Row } from "./ledger-rows.ts";
import type { EpisodeResult } from "./state.ts";

/** What of the staging of a call is learnt from. */
const Staged = z.object({ gradient: z.array(z.number()) });

/** A finished episode with the rows of its ledger. */
export interface Trajectory extends EpisodeResult {
  readonly rows: readonly Row[];
}

/** The episodes of a group that teach. */
export function teaching(results: readonly EpisodeResult[]): readonly EpisodeResult[] {
  return results.filter(({ status, reward }) => status === "finished" && reward !== null);
}

export type Lesson =
  | { readonly complete: true; readonly rollouts: readonly TrainedRollout[] }
  | { readonly complete: false; readonly incomplete: readonly Episode[] };

/** What is staged for the trajectories of a group; or which of them cannot be learnt from. */
export async function readLesson(
  blobs: BlobStore,
  trajectories: readonly Trajectory[],
  dimensions: number,
): Promise<Lesson> {
  const rollouts: TrainedRollout[] = [];
  const incomplete: Episode[] = [];
  for (const { rollout, attempt, reward, rows } of trajectories) {
    const gradients = isTorn(rows) ? undefined : await gradientsOf(blobs, rows, dimensions);
    if (gradients === undefined) incomplete.push({ rollout, attempt });
    else rollouts.push({ rolloutId: rollout, reward: reward ?? 0, gradients });
  }
  return incomplete.length > 0 ? { complete: false, incomplete } : { complete: true, rollouts };
}

/** The weights after one step over the group. */
export function learnt(weights: readonly number[], rollouts: readonly TrainedRollout[]): readonly number[] {
  return reinforce({ weights, groups: [{ rollouts }], learningRate: defaultLearningRate });
}

/** @returns undefined where something that was staged is missing or damaged */
async function gradientsOf(
  blobs: BlobStore,
  rows: readonly Row[],
  dimensions: number,
): Promise<readonly (readonly number[])[] | undefined> {
  const gradients: (readonly number[])[] = [];
  for (const { staging } of rows) {
    if (staging === null) continue;
    const gradient = await gradientOf(blobs, staging);
    if (gradient?.length !== dimensions) return undefined;
    gradients.push(gradient);
  }
  return gradients;
}

async function gradientOf(blobs: BlobStore, staging: string): Promise<readonly number[] | undefined> {
  try {
    const staged = Staged.safeParse(JSON.parse(await blobs.get(staging)));
    return staged.success ? staged.data.gradient : undefined;
  } catch (error) {
    if (HoldpointError.is(error, "invalid_checkpoint_state") || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
