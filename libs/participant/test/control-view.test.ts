/** What participants read of the control subject. */
import { decodeEvents, encodeEvents, eventSchema, type StoredMessage } from "@holdpoint/eventsourcing";
import { ControlEvent } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { controlView } from "../src/control-view.ts";
import { askTo, episodeOf } from "./room.ts";

function message(...events: readonly object[]): StoredMessage {
  const body = new TextEncoder().encode(
    encodeEvents(
      "c1",
      events.map((event) => ({ type: "", data: {}, ...event })),
    ).body,
  );
  return { sequence: 1, subject: "hp.room.control", timeMs: 1, messageId: "m", controlPlane: false, body };
}

const episodes = [episodeOf("r1"), episodeOf("r2")];
const named = { command: 1, checkpointId: "c1" };
const holding = {
  role: "agent" as const,
  instance: "a",
  worker: "0",
  digest: "0".repeat(64),
  sessions: 2,
  capturedSequence: 1,
};
const cut = { cut: { HP_room: 1 }, anchor: "0".repeat(64), capturedAtMs: 1 };

test("leaves out the lists that are for others, and nothing else", () => {
  const events: readonly ControlEvent[] = [
    { type: "checkpoint.prepared", data: { ...named, restarts: episodes, continued: episodes } },
    { type: "checkpoint.captured", data: { ...named, stream: "HP_room", scope: episodes, holdings: [holding] } },
    { type: "checkpoint.committed", data: { ...named, ...cut, scope: episodes, holdings: [holding] } },
    { type: "restore.installed", data: { ...named, source: "c0", receipt: [] } },
  ];
  const { events: read, problems } = decodeEvents(message(...events), controlView);
  expect(problems).toEqual([]);
  expect(read.map(({ event }) => event)).toEqual([
    { type: "checkpoint.prepared", data: { ...named, restarts: [], continued: [] } },
    { type: "checkpoint.captured", data: { ...named, stream: "HP_room", scope: [], holdings: [] } },
    { type: "checkpoint.committed", data: { ...named, ...cut, scope: [], holdings: [] } },
    { type: "restore.installed", data: { ...named, source: "c0", receipt: [] } },
  ]);
});

test("reads what a participant obeys as everybody does", () => {
  const events = [
    askTo("capture", { scope: episodes }),
    { type: "rollouts.marked", data: { command: 1, rollouts: episodes } },
    {
      type: "restore.started",
      data: { ...named, source: "c0", cut: {}, assignments: [{ rollout: "r", from: 0, to: 1 }] },
    },
  ];
  expect(decodeEvents(message(...events), controlView)).toEqual(
    decodeEvents(message(...events), eventSchema(ControlEvent)),
  );
});

test("refuses what is malformed, in the same words", () => {
  const wrong = [
    { type: "checkpoint.prepared", data: { command: -1 } },
    { type: "checkpoint.captured", data: {} },
  ];
  const { problems } = decodeEvents(message(...wrong), controlView);
  expect(problems).toHaveLength(2);
  expect(problems[0]).toContain("event 0 (checkpoint.prepared)");
});
