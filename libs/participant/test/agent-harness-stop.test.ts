/** Harnesses whose activation is over, for whatever reason: none is left running. */
import { defineOpaqueAgent, type Harness } from "@holdpoint/participant";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AgentRoom, until } from "./agent-room.ts";
import { episodeOf } from "./room.ts";

const r1 = episodeOf("r1");
const fails = () => Promise.reject(new Error("no such process"));

let room: AgentRoom;
/** How often a harness was stopped. */
let stops: number;
let end: PromiseWithResolvers<string>;
beforeEach(async () => {
  room = await AgentRoom.open();
  stops = 0;
  end = Promise.withResolvers();
});
afterEach(() => room.model.stop());

/** Serves an agent whose harness is other in these parts. */
async function serve(parts: Partial<Harness> = {}, graceMs = 10_000): Promise<void> {
  const launch = async (): Promise<Harness> => ({
    handle: "h",
    done: end.promise,
    pause: async () => {},
    continue: async () => {},
    state: () => null,
    ...parts,
    stop: async () => {
      stops += 1;
      end.reject(new Error("it was stopped"));
      await parts.stop?.();
    },
  });
  await room.agent(defineOpaqueAgent({ name: "claw", mode: "exported", launch }), { graceMs });
}

async function begin(): Promise<void> {
  await room.seed(r1);
  void room.activate(r1);
  await until(async () => (await room.typesOf(r1)).includes("harness.launched"));
}

describe("a harness is stopped once", () => {
  test("where it cannot be paused", async () => {
    await serve({ pause: fails });
    await begin();
    await room.ask("prepare");
    await until(() => stops > 0);
    await room.resume();
    await room.call(r1, "close");
    expect(stops).toBe(1);
  });

  test("where it cannot be continued", async () => {
    await serve({ continue: fails });
    await begin();
    await room.done("prepare", {});
    await room.resume();
    await until(() => stops > 0);
    await room.call(r1, "close");
    expect(stops).toBe(1);
  });

  test("where its session is closed while it is being continued", async () => {
    await serve({ continue: () => new Promise(() => {}) });
    await begin();
    await room.done("prepare", {});
    await room.resume();
    await room.call(r1, "close");
    expect([stops, room.troubles]).toEqual([1, []]);
  });

  test("where it has failed by itself", async () => {
    await serve();
    await begin();
    end.reject(new Error("out of memory"));
    expect(await room.activate(r1)).toMatchObject({ ok: false });
    expect(stops).toBe(1);
  });

  test("where it has come to its end", async () => {
    await serve();
    end.resolve("done");
    expect(await room.run(r1)).toMatchObject({ data: { status: "ended" } });
    expect(stops).toBe(1);
  });

  test.each([
    ["its handle is too long", { handle: "h".repeat(513) }],
    ["its handle is none", { handle: "" }],
  ])("where it is refused since %s", async (_, parts) => {
    await serve(parts);
    expect(await room.run(r1)).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
    expect(stops).toBe(1);
  });
});

test.each([
  ["never stops", () => new Promise<never>(() => {}), /r1, attempt 0, was not stopped.*within 10 ms/],
  ["throws when it is stopped", fails, /r1, attempt 0, was not stopped.*no such process/],
])("a harness that %s holds up nobody for ever, and stands in the log of the process", async (_, stop, words) => {
  await serve({ stop }, 10);
  await begin();
  end.resolve("done");
  expect(await room.activate(r1)).toMatchObject({ data: { status: "ended" } });
  expect(room.troubles).toEqual([expect.stringMatching(words)]);
});
