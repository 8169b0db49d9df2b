/** What of a call is written down, what is not, and for how long. */
import { parseJson } from "@holdpoint/eventsourcing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ask, bodyOf, headersOf, post, undecided } from "./caller.ts";
import { Room } from "./room.ts";

const episode = { rollout: "r1", attempt: 0 };

let room: Room;
beforeEach(() => {
  room = new Room();
});
afterEach(() => room.leave());

/** The bodies of all messages, as text. */
async function bodies(): Promise<readonly string[]> {
  const texts: string[] = [];
  const upTo = await room.log.lastSequence();
  await room.log.read({ upTo }, ({ body }) => void texts.push(new TextDecoder().decode(body)));
  return texts;
}

describe("the log", () => {
  test("[F3] takes as many bytes for a turn however long the conversation is", async () => {
    const { url } = await room.enter();
    const bytesOf = async (turn: number, letters: number) => {
      const before = (await bodies()).join("").length;
      const later = [{ role: "user" as const, content: "a".repeat(letters) }];
      await ask(url, { turn }, bodyOf(0, { later }));
      return (await bodies()).join("").length - before;
    };
    expect(await bytesOf(0, 1)).toBe(await bytesOf(1, 1_000_000));
  });

  test("[F10] holds no credential that a caller sent, and neither do the server's own lines", async () => {
    const { url } = await room.enter();
    const secret = "sk-do-not-write-this-down";
    const headers = { ...headersOf({ turn: 0 }), authorization: `Bearer ${secret}`, "x-api-key": secret };
    await post(url, bodyOf(0), headers);
    await post(url, "{", headers);
    await post(url, bodyOf(0, { model: "none" }), { ...headers, "x-holdpoint-turn": "1" });
    const written = [...(await bodies()), ...room.lines, ...room.blobs.texts.values()].join("\n");
    expect(written).toContain("call.delivered");
    expect(written).not.toContain(secret);
  });

  test("holds a request as its digest alone, and what the trainer needs as a blob", async () => {
    const { url } = await room.enter();
    await ask(url, { turn: 0 }, bodyOf(0, { model: "softmax@0", later: undecided }));
    const finished = (await room.control.said()).find(({ type }) => type === "call.finished");
    const staged = finished?.type === "call.finished" ? finished.data.staging : null;
    const json = parseJson(new TextEncoder().encode(room.blobs.texts.get(staged ?? "")));
    expect(json).toMatchObject({ value: { logprob: expect.any(Number), choice: { candidates: expect.any(Number) } } });
    expect((await bodies()).join("")).not.toContain("You repair a JavaScript package");
  });
});

test("a response that is too large for its event rests in a blob, and is answered from there", async () => {
  const { url } = await room.enter();
  for (const turn of [0, 1, 2]) await ask(url, { turn }, bodyFor(turn));
  const first = await ask(url, { turn: 3 }, bodyFor(3));
  expect(first.text.length).toBeGreaterThan(20_000);
  const successor = await room.enter();
  expect((await ask(successor.url, { turn: 3 }, bodyFor(3))).text).toBe(first.text);
  const row = successor.model.sessions.get(episode)?.state.head?.row;
  expect(row?.response.text).toBeUndefined();
  expect(room.blobs.texts.get(row?.response.digest ?? "")).toBe(first.message);
});

/** A body to which the script says what it has for that turn. */
function bodyFor(turn: number): string {
  return bodyOf(turn, { later: Array.from({ length: turn }, () => ({ role: "assistant" as const, content: "" })) });
}

describe("a ledger", () => {
  test("is dropped when the environment says that its episode has ended", async () => {
    const { url, model } = await room.enter();
    await ask(url, { turn: 0 });
    await room.end(episode);
    await expect.poll(() => model.sessions.all()).toEqual([]);
  });

  test("is dropped by a successor where its episode ended while nobody was there", async () => {
    const { url } = await room.enter();
    await ask(url, { turn: 0 });
    await ask(url, { rollout: "r2", turn: 0 });
    await room.leave();
    await room.end(episode);
    const { model } = await room.enter();
    await expect.poll(() => model.sessions.all().map(({ rollout }) => rollout)).toEqual(["r2"]);
  });

  test("of another episode stays", async () => {
    const { url, model } = await room.enter();
    await ask(url, { turn: 0 });
    await ask(url, { rollout: "r2", turn: 0 });
    await room.end({ rollout: "r2", attempt: 0 });
    await expect.poll(() => model.sessions.all().map(({ rollout }) => rollout)).toEqual(["r1"]);
  });
});
