import { MemoryLog } from "@holdpoint/eventsourcing";
import { expect, test } from "vitest";
import { episodeOf, Room, seeded } from "./room.ts";

test("a successor knows by itself how long nobody worked, before the coordinator says so", async () => {
  const log = { nowMs: 1000 };
  const room = new Room(new MemoryLog("HP_room", () => log.nowMs));
  const first = await room.enter();
  log.nowMs = 2000;
  await first.record(seeded(episodeOf("r1")));
  expect(first.outages).toEqual([]);

  log.nowMs = 9000;
  const successor = await room.enter();

  expect(successor.outages).toEqual([{ fromMs: 2000, toMs: 9000 }]);
});
