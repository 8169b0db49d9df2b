import { expect, test } from "vitest";
import { askTo, episodeOf, Room, seeded, turns } from "./room.ts";

const r1 = episodeOf("r1");

test("[C13] while no checkpoint is open a boundary costs no append", async () => {
  const room = new Room();
  const agent = await room.enter();
  await agent.record(seeded(r1));
  const before = await room.log.lastSequence();
  for (let at = 0; at < 100; at++) await agent.boundary(r1);
  expect(await room.log.lastSequence()).toBe(before);
});

test("[A13] an abandoned checkpoint leaves no park request behind", async () => {
  const room = new Room();
  const agent = await room.enter();
  await agent.record(seeded(r1));
  await room.obeyed("prepare");
  const parked = agent.boundary(r1);
  await room.resume();
  await parked;
  const before = await room.log.lastSequence();
  await agent.boundary(r1);
  expect(await room.log.lastSequence()).toBe(before);
  expect((await room.types()).slice(-3).includes("session.unparked")).toBe(true);
});

test("a session that is let go on while the next checkpoint is open already parks again, under that one", async () => {
  const room = new Room();
  const agent = await room.enter();
  await agent.record(seeded(r1));
  await room.obeyed("prepare");
  let isOn = false;
  const parked = agent.boundary(r1).then(() => (isOn = true));
  await turns();
  await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
  const ended = { type: "resume.ended" as const, data: { command: 1, checkpointId: "c1" } };
  await room.decide(ended, askTo("prepare", { checkpointId: "c2", command: 2 }));
  await turns();
  expect([isOn, agent.sessions.get(r1)?.status.work]).toEqual([false, "parked"]);
  const said = await room.said();
  const parks = said.flatMap((event) =>
    event.type === "session.parked" || event.type === "session.unparked" ? [[event.type, event.data.checkpointId]] : [],
  );
  expect(parks.slice(-2)).toEqual([
    ["session.unparked", "c1"],
    ["session.parked", "c2"],
  ]);
  await room.resume({ checkpointId: "c2", command: 2 });
  await parked;
});

test("parking ends with its signal, and the session stays parked until it is let go on", async () => {
  const room = new Room();
  const agent = await room.enter();
  await agent.record(seeded(r1));
  await room.obeyed("prepare");
  const controller = new AbortController();
  const parked = agent.boundary(r1, controller.signal);
  await turns();
  controller.abort(new Error("closed"));
  await expect(parked).rejects.toThrow("closed");
  expect(agent.sessions.get(r1)?.status.work).toBe("parked");
});
