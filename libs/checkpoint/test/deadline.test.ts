import { anchorOf, draftsOf, initialState } from "@holdpoint/checkpoint";
import { digest } from "@holdpoint/testing";
import { assert, date, property } from "fast-check";
import { describe, expect, test } from "vitest";
import { instantMs } from "../src/instant.ts";
import { Simulation } from "./simulation.ts";

async function deadlineOf(simulation: Simulation, deadlineAt: string): Promise<number | undefined> {
  await simulation.join({ role: "model" });
  await simulation.command("prepare", { checkpointId: "c1", deadlineAt });
  await simulation.settle();
  const opened = (await simulation.control()).find(({ event }) => event.type === "checkpoint.opened");
  return opened?.event.type === "checkpoint.opened" ? opened.event.data.deadlineAtMs : undefined;
}

describe("an instant is read as every clock reads it", () => {
  test.each([
    "2026-11-29T12:00:00Z",
    "2026-11-29T12:00:00.123987Z",
    "2028-02-29T23:59:59.999Z",
    "2028-03-01T00:00:00.5Z",
    "2100-02-28T00:00:00Z",
    "2100-03-01T00:00:00Z",
    "2000-02-29T00:00:00Z",
    "1972-12-31T23:59:59Z",
  ])("%s", async (instant) => {
    const simulation = new Simulation();
    simulation.nowMs = Date.parse(instant) - 60_000;
    await simulation.takeOver();
    expect(await deadlineOf(simulation, instant)).toBe(Date.parse(instant));
  });

  test("any of them", () => {
    const instants = date({ min: new Date("1970-01-02"), max: new Date("2200-01-01"), noInvalidDate: true });
    assert(
      property(instants, (instant) => {
        expect(instantMs(instant.toISOString())).toBe(instant.getTime());
      }),
    );
    expect(instantMs("yesterday")).toBeNaN();
  });
});

describe("messages", () => {
  const author = { incarnation: "coordinator-1", number: 7 };
  const state = { ...initialState("demo", "HP_demo"), controlSequence: 41 };
  const guarded = { type: "cut.guarded" as const, data: { checkpointId: "c1", subject: "s", sequence: 3 } };

  test("have ids that are unique for the run, and each its expectation", () => {
    const outcome = {
      ok: true as const,
      command: 9,
      operation: "status",
      result: { phase: "idle" as const, checkpointId: null },
    };
    const drafts = draftsOf(
      state,
      [
        { to: "control", events: [guarded] },
        { to: "control", events: [guarded], expects: { subject: "hp.demo.log.agent.a.0", sequence: 3 } },
        {
          to: "log",
          subject: "hp.demo.log.agent.b.0",
          command: 9,
          expects: { subject: "hp.demo.log.agent.b.0", sequence: 5 },
        },
        { to: "outcome", outcome },
      ],
      author,
    );
    expect(drafts.map(({ messageId }) => messageId)).toEqual([0, 1, 2, 3].map((at) => `coordinator-1.7.${at}`));
    expect(drafts.map(({ subject, expected }) => [subject, expected])).toEqual([
      ["hp.demo.control", { subject: "hp.demo.control", sequence: 41 }],
      ["hp.demo.control", { subject: "hp.demo.log.agent.a.0", sequence: 3 }],
      ["hp.demo.log.agent.b.0", { subject: "hp.demo.log.agent.b.0", sequence: 5 }],
      ["hp.demo.outcome.9", { subject: "hp.demo.outcome.9", sequence: 0 }],
    ]);
    expect(JSON.parse(drafts[0]?.body ?? "")).toEqual({ schema: 1, incarnation: "coordinator-1", events: [guarded] });
    expect(JSON.parse(drafts[2]?.body ?? "")).toMatchObject({
      events: [{ type: "participant.fenced", data: { command: 9 } }],
    });
    expect(JSON.parse(drafts[3]?.body ?? "")).toEqual(outcome);
  });

  test("[L15] are known again by all that they are", () => {
    const message = {
      sequence: 5,
      subject: "hp.demo.control",
      messageId: "m",
      timeMs: 12.5,
      controlPlane: false,
      body: new TextEncoder().encode("{}"),
    };
    const others = [
      { sequence: 6 },
      { subject: "hp.demo.other" },
      { messageId: "n" },
      { timeMs: 12.25 },
      { body: new TextEncoder().encode("[]") },
    ];
    const anchors = [{}, ...others].map((other) => anchorOf({ ...message, ...other }, digest));
    expect(new Set(anchors).size).toBe(6);
    expect(anchors[0]).toBe(digest(JSON.stringify([5, "hp.demo.control", "m", 12.5, "{}"])));
  });
});
