/** What an environment remembers of when sessions stood parked. */
import { encodeEvents, MemoryLog } from "@holdpoint/eventsourcing";
import { type Episode, logSubject } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { Parking } from "../src/environment/parking.ts";

const subject = logSubject("room", { role: "agent", instance: "main", worker: "0" });
const episodes = ["ours", "theirs"].map((rollout) => ({ rollout, attempt: 0 }));
const [ours, theirs] = [episodes[0] ?? { rollout: "", attempt: 0 }, episodes[1] ?? { rollout: "", attempt: 0 }];

/** An agent whose sessions park at 1 s and go on at 3 s, unless they are left parked. */
async function parked({ goOn }: { readonly goOn: boolean }) {
  let nowMs = 1_000;
  const log = new MemoryLog("HP_room", () => nowMs);
  const live = new Set<string>(["ours"]);
  const say = async (type: "session.parked" | "session.unparked", data: readonly Episode[]) => {
    const events = data.map((episode) => ({ type, data: { ...episode, checkpointId: "c1" } }));
    const sequence = await log.lastSequence();
    const messageId = String(sequence);
    await log.append({ subject, messageId, expected: { subject, sequence }, ...encodeEvents("a", events) });
  };
  await say("session.parked", episodes);
  nowMs = 3_000;
  if (goOn) await say("session.unparked", episodes);
  const parking = new Parking({ log, run: "room", isLive: ({ rollout }) => live.has(rollout) });
  await parking.readFrom(1);
  return { parking, live, say };
}

test("the sessions of other environments leave nothing with it", async () => {
  const { parking } = await parked({ goOn: true });
  expect(parking.spansOf(ours, 9_000)).toEqual([{ fromMs: 1_000, toMs: 3_000 }]);
  expect([parking.spansOf(theirs, 9_000), parking.size]).toEqual([[], 1]);
});

test("an episode that is over leaves nothing, also where its agent says more of it afterwards", async () => {
  const { parking, live, say } = await parked({ goOn: false });
  live.clear();
  parking.forget(ours);
  await say("session.unparked", episodes);
  await parking.readFrom(1);
  parking.letGo(9_000);
  expect(parking.size).toBe(0);
});

test("one that ended without a word to it is forgotten when admission opens", async () => {
  const { parking, live } = await parked({ goOn: false });
  live.clear();
  expect(parking.size).toBe(1);
  parking.letGo(9_000);
  expect(parking.size).toBe(0);
});
