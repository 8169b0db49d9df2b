/** Calls of episodes that are over, and calls of a model that is in no checkpoint. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ask, onlyPolicy, post, Room } from "./model-room.ts";

const fine = onlyPolicy(() => ({ message: { role: "assistant", content: "fine" } }));
const stale = { status: 409, body: { error: { code: "stale_attempt" } } };

let room: Room;
beforeEach(() => {
  room = new Room();
});
afterEach(() => room.stop());

describe("a call of an episode that has ended", () => {
  test("is stale, and brings no ledger back", async () => {
    const { url, model } = await room.serve(fine);
    await ask(url);
    await room.end();
    await expect.poll(() => model.sessions.all()).toEqual([]);
    for (const turn of [0, 1]) expect(await ask(url, { turn })).toMatchObject(stale);
    expect(model.sessions.all()).toEqual([]);
    expect(await ask(url, { attempt: 1 })).toMatchObject({ status: 200 });
  });

  test("is stale also where it would be its first", async () => {
    const { url, model } = await room.serve(fine);
    await ask(url, { rollout: "r2" });
    await room.end({ rollout: "r1" });
    await room.end({ rollout: "r2" });
    await expect.poll(() => model.sessions.all()).toEqual([]);
    expect(await ask(url, { rollout: "r1" })).toMatchObject(stale);
    expect(model.sessions.all()).toEqual([]);
  });

  test("is ended while it is in the making, and leaves no ledger", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<undefined>();
    const { url, model } = await room.serve(
      onlyPolicy(() => {
        begin(undefined);
        return new Promise(() => {});
      }),
    );
    const call = ask(url);
    await begun;
    await room.end();
    expect(await call).toMatchObject(stale);
    await expect.poll(() => model.sessions.all()).toEqual([]);
    expect((await room.calls()).map(({ type }) => type)).toEqual(["call.started"]);
  });
});

describe("while a checkpoint is open", () => {
  test("a model that is in no checkpoint answers on, whoever calls", async () => {
    const { url, model } = await room.serve(fine, "restart_only");
    await room.close(model);
    expect(await ask(url)).toMatchObject({ status: 200 });
    const identity = { "x-holdpoint-rollout": "r2", "x-holdpoint-attempt": "0" };
    expect(await post(url, {}, identity)).toMatchObject({ status: 200 });
  });
});
