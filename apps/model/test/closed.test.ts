/** The model server while a checkpoint is open. */
import { initialWeights } from "@holdpoint/repair";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ask, bodyOf, headersOf, post } from "./caller.ts";
import { Room } from "./room.ts";

const softmax1 = bodyOf(0, { model: "softmax@1" });
const received = ["call.started 0", "call.finished 0", "call.delivered 0"];

let room: Room;
beforeEach(() => {
  room = new Room();
});
afterEach(() => room.leave());

describe("an aware caller", () => {
  test("is refused at once while admission is closed, and nothing of the call is in the log", async () => {
    const { url } = await room.enter();
    await room.control.close("c1");
    const reply = await ask(url, { turn: 0 });
    expect(reply).toMatchObject({ status: 503, code: "admission_closed" });
    expect(await room.control.calls()).toEqual([]);
  });

  test("that waits for its response is refused when admission closes", async () => {
    const { url, waiting } = await room.enter();
    const refused = ask(url, { turn: 0 }, softmax1);
    await expect.poll(waiting).toBe(1);
    await room.control.close("c1");
    expect(await refused).toMatchObject({ status: 503, code: "admission_closed" });
  });

  test("[C15] does not hold up a prepare, and is answered from the ledger when it asks again", async () => {
    const { url, waiting } = await room.enter();
    const refused = ask(url, { turn: 0 }, softmax1);
    await expect.poll(waiting).toBe(1);
    expect(await room.control.close("c1")).toMatchObject({ blockerCount: 0 });
    await refused;
    await room.publish(1, initialWeights());
    await expect.poll(() => room.control.calls()).toEqual(["call.started 0", "call.finished 0"]);

    expect(await ask(url, { turn: 0 }, softmax1)).toMatchObject({ code: "admission_closed" });
    expect(await room.control.calls()).toEqual(["call.started 0", "call.finished 0"]);
    await room.control.open("c1");
    expect(await ask(url, { turn: 0 }, softmax1)).toMatchObject({ status: 200 });
    expect(await room.control.calls()).toEqual(received);
  });

  test("that asks again for what was delivered is refused, and the ledger says once that it does not have it", async () => {
    const { url, model } = await room.enter();
    const first = await ask(url, { turn: 0 });
    await room.control.close("c1");
    for (const _ of [1, 2]) expect(await ask(url, { turn: 0 })).toMatchObject({ code: "admission_closed" });
    expect(await room.control.calls()).toEqual([...received, "call.withheld 0"]);
    expect(model.sessions.get({ rollout: "r1", attempt: 0 })?.state.head).toBeUndefined();

    await room.control.open("c1");
    const again = await ask(url, { turn: 0 });
    expect(again.text).toBe(first.text);
    expect(await room.control.calls()).toEqual([...received, "call.withheld 0", "call.delivered 0"]);
  });

  test("that goes on from a withheld response has it after all", async () => {
    const { url, model } = await room.enter();
    await ask(url, { turn: 0 });
    await room.control.close("c1");
    await ask(url, { turn: 0 });
    await room.control.open("c1");
    expect(await ask(url, { turn: 1 })).toMatchObject({ status: 200 });
    expect(model.sessions.get({ rollout: "r1", attempt: 0 })?.state.head).toMatchObject({ count: 2 });
  });
});

describe("a caller that knows nothing of checkpoints", () => {
  test("is held until admission opens, and then answered", async () => {
    const { url, waiting } = await room.enter();
    await room.control.close("c1");
    const held = ask(url, { turn: 0, aware: false });
    await expect.poll(waiting).toBe(1);
    await room.control.open("c1");
    expect(await held).toMatchObject({ status: 200 });
  });

  test("is told to come back where a checkpoint is open for longer than it is held", async () => {
    const { url } = await room.enter({ holdMs: 10 });
    await room.control.close("c1");
    const reply = await ask(url, { turn: 0, aware: false });
    expect(reply).toMatchObject({ status: 503, code: "admission_closed" });
    expect(reply.headers.get("retry-after")).toBe("1");
    expect(await room.control.calls()).toEqual([]);
  });

  test("gets a response that finished while admission was closed only after it opened", async () => {
    const { url, waiting } = await room.enter();
    const late = ask(url, { turn: 0, aware: false }, softmax1);
    await expect.poll(waiting).toBe(1);
    await room.control.close("c1");
    await room.publish(1, initialWeights());
    await expect.poll(() => room.control.calls()).toEqual(["call.started 0", "call.finished 0"]);
    await room.control.open("c1");
    expect(await late).toMatchObject({ status: 200 });
    expect(await room.control.calls()).toEqual(received);
  });

  test("is refused when its attempt is retired while it is held", async () => {
    const { url, waiting } = await room.enter();
    await room.control.close("c1");
    const held = ask(url, { turn: 0, aware: false });
    await expect.poll(waiting).toBe(1);
    await room.control.retire({ rollout: "r1", attempt: 0 });
    expect(await held).toMatchObject({ status: 409, code: "stale_attempt" });
  });
});

test("[S7] an episode that no checkpoint can hold is answered while admission is closed", async () => {
  const { url, waiting } = await room.enter();
  const late = ask(url, { turn: 0, restart: true }, softmax1);
  await expect.poll(waiting).toBe(1);
  await room.control.close("c1");
  await room.publish(1, initialWeights());
  expect(await late).toMatchObject({ status: 200 });
  expect(await ask(url, { turn: 1, restart: true })).toMatchObject({ status: 200 });
  expect(await ask(url, { turn: 2 })).toMatchObject({ code: "admission_closed" });
});

test("[A14] health and the list of models are answered while admission is closed", async () => {
  const { url } = await room.enter();
  await room.control.close("c1");
  for (const path of ["/health", "/v1/models"]) expect((await fetch(`${url}${path}`)).status).toBe(200);
});

describe("a retired attempt", () => {
  test("is refused for good, and its ledger is dropped", async () => {
    const { url, model } = await room.enter();
    await ask(url, { turn: 0 });
    await room.control.retire({ rollout: "r1", attempt: 0 });
    const reply = await ask(url, { turn: 0 });
    expect(reply).toMatchObject({ status: 409, code: "stale_attempt" });
    expect(reply.headers.get("x-should-retry")).toBe("false");
    expect(model.sessions.all()).toEqual([]);
    expect(await ask(url, { attempt: 1, turn: 0 })).toMatchObject({ status: 200 });
  });

  test("leaves no call in the making", async () => {
    const { url, waiting } = await room.enter();
    const late = ask(url, { turn: 0 }, softmax1);
    await expect.poll(waiting).toBe(1);
    await room.control.retire({ rollout: "r1", attempt: 0 });
    expect(await late).toMatchObject({ status: 409, code: "stale_attempt" });
    await room.publish(1, initialWeights());
    expect(await room.control.calls()).toEqual([]);
  });
});

describe("[A10] a call whose caller goes away", () => {
  test("before it has finished leaves no row, and is made when it is asked again", async () => {
    const { url, waiting } = await room.enter();
    const leaving = new AbortController();
    const gone = post(url, softmax1, headersOf({ turn: 0 }), leaving.signal);
    const other = ask(url, { rollout: "r2", turn: 0 }, softmax1);
    await expect.poll(waiting).toBe(2);
    leaving.abort();
    await expect(gone).rejects.toThrow("aborted");
    await expect.poll(waiting).toBe(1);
    await room.publish(1, initialWeights());
    expect(await other).toMatchObject({ status: 200 });
    const ofGone = (await room.control.said()).filter(({ data }) => "rollout" in data && data.rollout === "r1");
    expect(ofGone.filter(({ type }) => type === "call.finished")).toEqual([]);
    expect(await ask(url, { turn: 0 }, softmax1)).toMatchObject({ status: 200 });
  });

  test("goes on for another that asks the same", async () => {
    const { url, waiting } = await room.enter();
    const leaving = new AbortController();
    const gone = post(url, softmax1, headersOf({ turn: 0 }), leaving.signal);
    const stays = ask(url, { turn: 0 }, softmax1);
    await expect.poll(waiting).toBe(2);
    leaving.abort();
    await expect(gone).rejects.toThrow("aborted");
    await expect.poll(waiting).toBe(1);
    await room.publish(1, initialWeights());
    expect(await stays).toMatchObject({ status: 200 });
    expect(await room.control.calls()).toEqual(received);
  });
});
