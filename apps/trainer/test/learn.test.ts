import { HoldpointError } from "@holdpoint/errors";
import type { BlobStore } from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import { expect, test } from "vitest";
import { learnt, readLesson, teaching, type Trajectory } from "../src/learn.ts";

class MapBlobs implements BlobStore {
  readonly #texts = new Map<string, string>();

  async put(text: string): Promise<string> {
    this.#texts.set(sha256(text), text);
    return sha256(text);
  }

  async get(digest: string): Promise<string> {
    const text = this.#texts.get(digest);
    if (text === undefined) throw new HoldpointError("invalid_checkpoint_state", `${digest} is missing`);
    return text;
  }

  async has(digest: string): Promise<boolean> {
    return this.#texts.has(digest);
  }
}

function trajectory(rollout: string, reward: number, stagings: readonly (string | null)[]): Trajectory {
  const rows = stagings.map((staging, turn) => ({ turn, staging }));
  return { rollout, attempt: 0, status: "finished", reward, policyVersion: 0, sequence: 1, rows };
}

test("[F7] only finished episodes with a reward teach", () => {
  const finished = { ...trajectory("a", 1, []), rows: undefined };
  const others = (["failed", "timed_out", "cancelled"] as const).map((status) => ({
    ...finished,
    status,
    reward: null,
  }));
  expect(teaching([finished, ...others])).toEqual([finished]);
});

test("a row with nothing staged teaches nothing, and is no fault", async () => {
  const blobs = new MapBlobs();
  const staged = await blobs.put(JSON.stringify({ logprob: -1, gradient: [1, 2] }));
  const lesson = await readLesson(blobs, [trajectory("a", 1, [null, staged, null])], 2);
  expect(lesson).toEqual({ complete: true, rollouts: [{ rolloutId: "a", reward: 1, gradients: [[1, 2]] }] });
});

test("[A9] an episode whose staging is missing, unreadable or of another length is incomplete, and named", async () => {
  const blobs = new MapBlobs();
  const good = await blobs.put(JSON.stringify({ gradient: [1, 2] }));
  const long = await blobs.put(JSON.stringify({ gradient: [1, 2, 3] }));
  const trajectories = [
    trajectory("good", 1, [good]),
    trajectory("missing", 1, ["0".repeat(64)]),
    trajectory("text", 1, [await blobs.put("not JSON")]),
    trajectory("other", 1, [await blobs.put("{}")]),
    trajectory("long", 1, [long]),
    trajectory("none", 1, []),
  ];
  const lesson = await readLesson(blobs, trajectories, 2);
  expect(lesson).toMatchObject({ complete: false });
  const named = lesson.complete ? [] : lesson.incomplete.map(({ rollout }) => rollout);
  expect(named).toEqual(["missing", "text", "other", "long", "none"]);
});

test("a store that cannot be reached is no missing staging", async () => {
  const away = new MapBlobs();
  away.get = async () => {
    throw new HoldpointError("unavailable", "the broker is away");
  };
  const reading = readLesson(away, [trajectory("a", 1, ["0".repeat(64)])], 2);
  await expect(reading).rejects.toMatchObject({ code: "unavailable" });
});

test("better than its siblings moves the weights with the gradient, worse against it", () => {
  const moved = learnt(
    [0],
    [
      { rolloutId: "a", reward: 1, gradients: [[2]] },
      { rolloutId: "b", reward: 0, gradients: [[-2]] },
    ],
  );
  expect(moved).toEqual([2]);
  expect(learnt([0.5], [])).toEqual([0.5]);
});
