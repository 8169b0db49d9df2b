import { initialWeights } from "@holdpoint/repair";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ask, bodyOf, headersOf, post } from "./caller.ts";
import { Room } from "./room.ts";

let room: Room;
beforeEach(() => {
  room = new Room();
});
afterEach(() => room.leave());

describe("a policy call", () => {
  test("is in the log as started, finished and delivered before it is answered", async () => {
    const { url, model } = await room.enter();
    const reply = await ask(url, { turn: 0 });
    expect(reply.status).toBe(200);
    expect(await room.control.calls()).toEqual(["call.started 0", "call.finished 0", "call.delivered 0"]);
    const head = model.sessions.get({ rollout: "r1", attempt: 0 })?.state.head;
    expect(head?.row.response.text).toBe(reply.message);
    expect(JSON.parse(reply.text)).toMatchObject({
      object: "chat.completion",
      model: "scripted",
      choices: [{ finish_reason: "tool_calls", message: { role: "assistant" } }],
    });
  });

  test("that is repeated is answered from the ledger with the same bytes, and is not made again", async () => {
    const { url } = await room.enter();
    const first = await ask(url, { turn: 0 });
    const again = await ask(url, { turn: 0 });
    expect(again.text).toBe(first.text);
    expect(await room.control.calls()).toHaveLength(3);
  });

  test("that is asked twice at once is made once", async () => {
    const { url } = await room.enter();
    const [one, other] = await Promise.all([ask(url, { turn: 0 }), ask(url, { turn: 0 })]);
    expect(one?.text).toBe(other?.text);
    const calls = await room.control.calls();
    expect(calls.filter((call) => call === "call.started 0")).toHaveLength(1);
  });

  test("with another request for a turn that is answered is a session conflict", async () => {
    const { url } = await room.enter();
    await ask(url, { turn: 0 });
    const other = await ask(url, { turn: 0 }, bodyOf(1));
    expect(other).toMatchObject({ status: 409, code: "session_conflict" });
    expect(other.message).toContain("was asked with another request before");
    expect(other.headers.get("x-should-retry")).toBe("false");
  });

  test("with another request for a turn that is in the making is a session conflict", async () => {
    const { url } = await room.enter();
    const both = [1, 2].map((version) => ask(url, { turn: 0 }, bodyOf(0, { model: `softmax@${version}` })));
    expect(await Promise.race(both)).toMatchObject({ status: 409, code: "session_conflict" });
    for (const version of [1, 2]) await room.publish(version, initialWeights());
    expect((await Promise.all(both)).map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      200, 409,
    ]);
  });

  test("[A16] that is not the first, in an episode whose ledger is not here, is refused", async () => {
    const { url } = await room.enter();
    expect(await ask(url, { turn: 5 })).toMatchObject({ status: 404, code: "not_found" });
    expect(await room.control.calls()).toEqual([]);
  });

  test("that passes over a turn is a session conflict", async () => {
    const { url } = await room.enter();
    await ask(url, { turn: 0 });
    expect(await ask(url, { turn: 2 })).toMatchObject({ status: 409, code: "session_conflict" });
  });
});

describe("a caller", () => {
  test.each([
    ["x-holdpoint-rollout", "rollout_id_required"],
    ["x-holdpoint-attempt", "rollout_id_required"],
  ])("[A2] without %s is refused with %s, and nothing of it is in the log", async (name, code) => {
    const { url } = await room.enter();
    const { [name]: _, ...headers } = headersOf({ turn: 0 });
    expect(await post(url, bodyOf(0), headers)).toMatchObject({ status: 400, code });
    expect(await room.control.calls()).toEqual([]);
  });

  test.each([
    { "x-holdpoint-rollout": "no dots.here" },
    { "x-holdpoint-attempt": "-1" },
    { "x-holdpoint-attempt": "1e3" },
    { "x-holdpoint-turn": "first" },
    { "x-holdpoint-aware": "yes" },
  ])("with the malformed header %j is refused, by its name", async (wrong) => {
    const { url } = await room.enter();
    const reply = await post(url, bodyOf(0), { ...headersOf({ turn: 0 }), ...wrong });
    expect(reply).toMatchObject({ status: 400, code: "invalid_request" });
    expect(reply.message).toContain(Object.keys(wrong)[0]);
  });

  test("that does not name its turns is known by its request", async () => {
    const { url } = await room.enter();
    const first = await ask(url, { aware: false }, bodyOf(0));
    const second = await ask(url, { aware: false }, bodyOf(1));
    const again = await ask(url, { aware: false }, bodyOf(0));
    expect(again.text).toBe(first.text);
    expect([first, second, again].map(({ headers }) => headers.get("x-holdpoint-turn"))).toEqual(["0", "1", "0"]);
  });
});

describe("a request", () => {
  test.each([
    ["that is no JSON", "{", /not JSON/],
    ["without messages", JSON.stringify({ model: "scripted", messages: [] }), /messages/],
    ["for a stream", bodyOf(0).replace(/^\{/, '{"stream":true,'), /stream is not supported yet/],
    ["for two choices", bodyOf(0).replace(/^\{/, '{"n":2,'), /one choice/],
  ])("%s is refused with what to do", async (_, body, words) => {
    const { url } = await room.enter();
    const reply = await post(url, body, headersOf({ turn: 0 }));
    expect(reply).toMatchObject({ status: 400, code: "invalid_request" });
    expect(reply.message).toMatch(words);
    expect(reply.headers.get("x-should-retry")).toBe("false");
  });

  test("for a model that there is not is refused with those that there are", async () => {
    const { url } = await room.enter();
    const reply = await ask(url, { turn: 0 }, bodyOf(0, { model: "gpt-9" }));
    expect(reply).toMatchObject({ status: 404, code: "not_found" });
    expect(reply.message).toContain("softmax@0, scripted");
  });

  test("on another path is refused with the paths that there are", async () => {
    const { url } = await room.enter();
    const response = await fetch(`${url}/v1/completions`, { method: "POST", body: "{}" });
    expect(response.status).toBe(404);
    expect(await response.text()).toContain("POST /v1/chat/completions");
  });
});

describe("the softmax policy", () => {
  test("says the same for the same weights, messages and seed, whatever the attempt", async () => {
    const { url } = await room.enter();
    const body = bodyOf(0, { model: "softmax@0" });
    const one = await ask(url, { attempt: 0, turn: 0 }, body);
    const other = await ask(url, { attempt: 7, turn: 0 }, body);
    expect(other.text).toBe(one.text);
  });

  test("is waited for while its version is not published", async () => {
    const { url } = await room.enter();
    const waiting = ask(url, { turn: 0 }, bodyOf(0, { model: "softmax@1" }));
    await room.publish(1, initialWeights());
    expect(await waiting).toMatchObject({ status: 200 });
    expect(await room.control.said()).toContainEqual(
      expect.objectContaining({ type: "call.started", data: expect.objectContaining({ policyVersion: 1 }) }),
    );
  });

  test("is unavailable where its version is not published in time, and nothing of the call is in the log", async () => {
    const { url } = await room.enter({ policyWaitMs: 20 });
    const reply = await ask(url, { turn: 0 }, bodyOf(0, { model: "softmax@1" }));
    expect(reply).toMatchObject({ status: 503, code: "unavailable" });
    expect(reply.headers.get("retry-after")).toBe("1");
    expect(await room.control.calls()).toEqual([]);
  });

  test("lists its versions, and scripted only where there is a script", async () => {
    const { url } = await room.enter();
    await room.publish(3, initialWeights());
    const response = await fetch(`${url}/v1/models`);
    const ids = expect.arrayContaining([
      expect.objectContaining({ id: "softmax@0" }),
      expect.objectContaining({ id: "softmax@3" }),
    ]);
    expect(await response.json()).toMatchObject({ object: "list", data: ids });
  });
});
