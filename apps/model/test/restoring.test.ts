/** Ledgers in checkpoints: captured, restored under a new attempt, and gone on with. */
import { lineage } from "@holdpoint/ledger";
import { initialWeights } from "@holdpoint/repair";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ask, bodyOf, undecided } from "./caller.ts";
import { capturedIn } from "./control.ts";
import { type Life, Room } from "./room.ts";

const original = { rollout: "r1", attempt: 0 };
const replacement = { rollout: "r1", attempt: 1 };
const assignment = { rollout: "r1", from: 0, to: 1 };

const softmax0 = { model: "softmax@0", later: undecided };

let room: Room;
beforeEach(() => {
  room = new Room();
});
afterEach(() => room.leave());

/** Asks these turns of an attempt, one after the other. */
async function converse({ url }: Life, attempt: number, turns: readonly number[]): Promise<string[]> {
  const texts: string[] = [];
  for (const turn of turns) texts.push((await ask(url, { attempt, turn })).text);
  return texts;
}

function rowsOf({ model }: Life, episode: typeof original) {
  const state = model.sessions.get(episode)?.state;
  return state && lineage(state).map(({ turn, parent, attempt }) => [turn, parent, attempt]);
}

describe("a checkpoint", () => {
  test("holds the delivered calls, and says of them what the agent has to say", async () => {
    const life = await room.enter();
    await converse(life, 0, [0, 1]);
    const { answer } = await room.control.checkpoint("c1", [original]);
    expect(answer).toMatchObject({ sessions: 1 });
    const head = life.model.sessions.get(original)?.state.head;
    expect(capturedIn(await room.control.said(), "c1")).toMatchObject([
      { ...original, edges: { calls: { received: 2, last: head?.row.response.digest } } },
    ]);
  });

  test("[A10][C15] leaves out a response that was not delivered; after a restore it is made again", async () => {
    const life = await room.enter();
    await converse(life, 0, [0]);
    const body = bodyOf(1, { model: "softmax@1" });
    const refused = ask(life.url, { turn: 1 }, body);
    await expect.poll(life.waiting).toBe(1);
    await room.control.close("c1");
    expect(await refused).toMatchObject({ code: "admission_closed" });
    await room.publish(1, initialWeights());
    await expect.poll(async () => (await room.control.calls()).at(-1)).toBe("call.finished 1");
    const { answer, cut } = await room.control.capture("c1", [original]);
    await room.control.open("c1");
    expect(capturedIn(await room.control.said(), "c1")).toMatchObject([{ edges: { calls: { received: 1 } } }]);

    const restored = await room.control.restore("x1", { id: "c1", cut }, assignment);
    expect(restored).toMatchObject({ digest: answer.digest, installed: [replacement] });
    expect(rowsOf(life, replacement)).toEqual([[0, null, 0]]);
    expect(await ask(life.url, { attempt: 1, turn: 1 }, body)).toMatchObject({ status: 200 });
    expect(rowsOf(life, replacement)).toEqual([
      [0, null, 0],
      [1, 0, 1],
    ]);
  });

  test("does not hold what is asked after its cut, and what it holds does not change by it", async () => {
    const life = await room.enter();
    await converse(life, 0, [0]);
    const { answer, cut } = await room.control.checkpoint("c1", [original]);
    await converse(life, 0, [1, 2]);
    const restored = await room.control.restore("x1", { id: "c1", cut }, assignment);
    expect(restored).toMatchObject({ digest: answer.digest });
    expect(rowsOf(life, replacement)).toEqual([[0, null, 0]]);
  });
});

describe("a restored ledger", () => {
  test("goes on under the new attempt as the original did, parents and chain intact", async () => {
    const life = await room.enter();
    await converse(life, 0, [0, 1]);
    const { cut } = await room.control.checkpoint("c1", [original]);
    const [second] = await converse(life, 0, [2]);
    const chain = life.model.sessions.get(original)?.state.head?.chain;
    await room.control.restore("x1", { id: "c1", cut }, assignment);

    expect(await ask(life.url, { attempt: 0, turn: 2 })).toMatchObject({ code: "stale_attempt" });
    expect(await converse(life, 1, [2])).toEqual([second]);
    expect(rowsOf(life, replacement)).toEqual([
      [0, null, 0],
      [1, 0, 0],
      [2, 1, 1],
    ]);
    expect(life.model.sessions.get(replacement)).toMatchObject({ claimed: true, state: { head: { chain } } });
  });

  test("answers for the calls that the original had made", async () => {
    const life = await room.enter();
    const before = await converse(life, 0, [0, 1]);
    const { cut } = await room.control.checkpoint("c1", [original]);
    await room.control.restore("x1", { id: "c1", cut }, assignment);
    expect(await converse(life, 1, [0, 1])).toEqual(before);
  });

  test("[A8][S1] is in the next checkpoint unchanged while nobody has claimed it", async () => {
    const life = await room.enter();
    await converse(life, 0, [0, 1]);
    const first = await room.control.checkpoint("c1", [original]);
    await room.control.restore("x1", { id: "c1", cut: first.cut }, assignment);
    expect(life.model.sessions.get(replacement)).toMatchObject({ claimed: false });
    await room.control.checkpoint("c2", [replacement]);
    const said = await room.control.said();
    const [before] = capturedIn(said, "c1");
    expect(capturedIn(said, "c2")).toMatchObject([{ ...replacement, digest: before?.digest, edges: before?.edges }]);
  });

  test("[A8] is in the next checkpoint with what was asked since, and can be restored from there", async () => {
    const life = await room.enter();
    await converse(life, 0, [0]);
    const first = await room.control.checkpoint("c1", [original]);
    await room.control.restore("x1", { id: "c1", cut: first.cut }, assignment);
    await converse(life, 1, [1]);
    const second = await room.control.checkpoint("c2", [replacement]);
    await converse(life, 1, [2]);
    const again = { rollout: "r1", from: 1, to: 2 };
    await room.control.restore("x2", { id: "c2", cut: second.cut }, again);
    expect(rowsOf(life, { rollout: "r1", attempt: 2 })).toEqual([
      [0, null, 0],
      [1, 0, 1],
    ]);
  });

  test("[A11] can come from the same checkpoint twice", async () => {
    const life = await room.enter();
    await converse(life, 0, [0, 1]);
    const { answer, cut } = await room.control.checkpoint("c1", [original]);
    await room.control.restore("x1", { id: "c1", cut }, assignment);
    await converse(life, 1, [2]);
    const second = await room.control.restore("x2", { id: "c1", cut }, { ...assignment, to: 2 });
    expect(second).toMatchObject({ digest: answer.digest, installed: [{ rollout: "r1", attempt: 2 }] });
    expect(rowsOf(life, { rollout: "r1", attempt: 2 })).toEqual([
      [0, null, 0],
      [1, 0, 0],
    ]);
  });

  test("is there in a fresh process too", async () => {
    const life = await room.enter();
    await converse(life, 0, [0, 1]);
    const { cut } = await room.control.checkpoint("c1", [original]);
    const next = await room.enter();
    await room.control.restore("x1", { id: "c1", cut }, assignment);
    const last = await room.enter();
    expect(rowsOf(next, replacement)).toEqual(rowsOf(last, replacement));
    expect(await ask(last.url, { attempt: 1, turn: 2 })).toMatchObject({ status: 200 });
  });
});

describe("[A9] a ledger whose staged tokens are missing", () => {
  test("is not gone on with: its episode is a restart, and others are restored", async () => {
    const life = await room.enter();
    for (const rollout of ["r1", "r2"]) {
      await ask(life.url, { rollout, turn: 0 });
      await ask(life.url, { rollout, turn: 1 }, bodyOf(rollout === "r1" ? 1 : 2, softmax0));
    }
    const staged = stagedFor(life, original);
    expect(staged).not.toEqual(stagedFor(life, { rollout: "r2", attempt: 0 }));
    const scope = [original, { rollout: "r2", attempt: 0 }];
    const { cut } = await room.control.checkpoint("c1", scope);
    for (const digest of staged) room.blobs.texts.delete(digest);

    const answer = await room.control.restore("x1", { id: "c1", cut }, assignment);
    expect(answer).toMatchObject({ installed: [], restarts: [replacement] });
    await room.control.restore("x2", { id: "c1", cut }, { rollout: "r2", from: 0, to: 1 });
    expect(life.model.sessions.get(replacement)?.status).toMatchObject({ restart: true });
    const refused = await ask(life.url, { attempt: 1, turn: 2 });
    expect(refused).toMatchObject({ status: 409, code: "invalid_checkpoint_state" });
    expect(refused.message).toContain("start the rollout over");
    expect(await room.control.close("c2")).toMatchObject({ restarts: expect.arrayContaining([replacement]) });
    await room.control.open("c2");
    expect(await ask(life.url, { rollout: "r2", attempt: 1, turn: 2 })).toMatchObject({ status: 200 });
  });
});

/** The digests of what the calls of an episode staged. */
function stagedFor({ model }: Life, episode: typeof original): readonly string[] {
  const state = model.sessions.get(episode)?.state;
  return state === undefined ? [] : lineage(state).flatMap(({ staging }) => staging ?? []);
}
