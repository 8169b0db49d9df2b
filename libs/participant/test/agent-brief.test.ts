/** Harnesses that end at once: they run in this process, and do nothing. */
import { defineOpaqueAgent, type Harness, type OpaqueAgentInput } from "@holdpoint/participant";
import type { Json } from "@holdpoint/schemas";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AgentRoom, until } from "./agent-room.ts";
import { GatedLog } from "./gated-log.ts";
import { episodeOf, turns } from "./room.ts";

const r1 = episodeOf("r1");

let room: AgentRoom;
beforeEach(async () => {
  room = await AgentRoom.open();
});
afterEach(() => room.model.stop());

function opaque(more: Pick<OpaqueAgentInput<Json>, "launch">) {
  return defineOpaqueAgent({ name: "brief", mode: "exported", ...more });
}

const nothing = async () => {};

/** A harness in this process, which ends as its test says. */
function ending(done: Promise<string>): Harness {
  return { handle: "h", done, pause: nothing, continue: nothing, state: async () => ({ at: 1 }), stop: nothing };
}

describe("a harness that has ended", () => {
  test("[L3] is not launched again by whoever asks again, and gives the same output", async () => {
    let launches = 0;
    await room.agent(
      opaque({
        launch: async () => {
          launches += 1;
          return ending(Promise.resolve("out"));
        },
      }),
    );
    const ended = { ok: true, data: { status: "ended", output: { text: "out" } } };
    expect([await room.run(r1, {}), await room.activate(r1)]).toMatchObject([ended, ended]);
    expect([launches, await room.typesOf(r1)]).toMatchObject([
      1,
      expect.not.arrayContaining(["session.restart_marked"]),
    ]);
  });

  test("[L6] at the cut gives its output to the attempt that is restored, and none is launched for that", async () => {
    let launches = 0;
    const launchEnded = async () => {
      launches += 1;
      return ending(Promise.resolve("out"));
    };
    await room.agent(opaque({ launch: launchEnded }));
    await room.run(r1, {});
    const cut = await room.checkpoint([r1], "c1", 1);
    await room.letGo("c1", 1);
    await room.done("retire", { command: 2, checkpointId: null, rollouts: [r1] });
    const next = await room.restored({ id: "x1", command: 3, source: "c1", cut, from: r1, to: 1 });
    await room.letGo("x1", 3);
    expect(await room.activate(next)).toMatchObject({ data: { status: "ended", output: { text: "out" } } });
    expect(launches).toBe(1);
  });

  test("badly while its launch is being recorded ends its activation, and not the process", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    try {
      const log = new GatedLog(room.log);
      const failing = Promise.withResolvers<string>();
      const launchShut = async () => {
        log.isShut = true;
        return ending(failing.promise);
      };
      await room.agent(opaque({ launch: launchShut }), { log });
      await room.seed(r1, {});
      const activated = room.activate(r1);
      await until(() => log.isShut);
      failing.reject(new Error("exit 1"));
      await turns();
      log.open();
      expect(await activated).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", note);
    }
  });
});
