/** A process that comes after a crash goes on where the one before it stood (L9). */
import { MemoryLog, type StoredMessage } from "@holdpoint/eventsourcing";
import { type ControlEvent, logSubject } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import { type Agent, episodeOf, received, Room, seeded, turns, writer } from "./room.ts";

const r1 = episodeOf("r1");
const r2 = episodeOf("r2");

const steps = ["seeded", "prepare", "parked", "capture", "cut", "proceed", "resumed", "again"] as const;

/** Plays one checkpoint, step by step; before each `interrupt` may put another process in the place of the agent. */
async function play(room: Room, interrupt: (agent: Agent, step: string) => Promise<Agent>): Promise<Agent> {
  let agent = await room.enter();
  const parking = () => void agent.boundary(r1).catch(() => {});
  const actions: Record<(typeof steps)[number], () => Promise<unknown>> = {
    seeded: () => agent.record(seeded(r1), seeded(r2), received(r1, 0)),
    prepare: () => room.obeyed("prepare"),
    parked: async () => {
      parking();
      await turns();
    },
    capture: () => room.obeyed("capture", { scope: [r1] }),
    cut: () => room.cut([r1]),
    proceed: () => room.obeyed("proceed"),
    resumed: () => room.resume(),
    again: async () => {
      await agent.boundary(r1);
      await agent.record(received(r1, 1));
    },
  };
  for (const step of steps) {
    agent = await interrupt(agent, step);
    await actions[step]();
  }
  return agent;
}

describe.each(steps)("a process that dies before %s", (where) => {
  test("[L9] is followed by one that obeys what is owed, and ends up with what an undisturbed one has", async () => {
    const room = new Room();
    const undisturbed = await play(new Room(), async (agent) => agent);
    const agent = await play(room, async (before, step) => {
      if (step !== where) return before;
      const after = await room.enter();
      expect(after.gate).toEqual(before.gate);
      return after;
    });
    expect(agent.sessions.all().map(({ state, status }) => [state, status])).toEqual(
      undisturbed.sessions.all().map(({ state, status }) => [state, status]),
    );
    expect(agent.sessions.fixedBy("c1")).toMatchObject([{ ...r1, state: { calls: 1 } }]);
    expect(agent.gate).toMatchObject({ closed: undefined, fixed: undefined, cut: undefined, asks: [] });
    expect(room.troubles.filter((trouble) => !trouble.includes("taken over"))).toEqual([]);
  });
});

test.each(["prepare", "capture"] as const)(
  "[L9] an ask to %s that came while nobody was there is obeyed by the next process",
  async (operation) => {
    const room = new Room();
    const agent = await room.enter();
    await agent.record(seeded(r1));
    if (operation === "capture") await room.obeyed("prepare");
    await agent.stop();
    const asked = await room.ask(operation, { scope: [r1] });
    await room.enter();
    expect(await room.answerTo(asked)).not.toHaveProperty("problem");
  },
);

test("[L9] an answer whose acknowledgement got lost with the process is not given again", async () => {
  const room = new Room();
  await room.enter();
  const asked = await room.ask("prepare");
  await room.answerTo(asked);
  await room.enter();
  await turns();
  const answers = (await room.said()).filter(({ type }) => type === "participant.answered");
  expect(answers.length).toBe(1);
});

test("[L9] a process that opens between captured and cut appends nothing more of its own, and says so by being new", async () => {
  const room = new Room();
  const before = await room.enter();
  await before.record(seeded(r1));
  await room.obeyed("prepare");
  await room.obeyed("capture", { scope: [r1] });
  const agent = await room.enter();
  const { length } = await room.said();
  const call = agent.record(received(r1, 0));
  await turns();
  expect((await room.said()).length).toBe(length);
  await room.cut([r1]);
  await turns();
  expect((await room.said()).length).toBe(length);
  await room.resume();
  await call;
});

test("[L9] a session found parked after its checkpoint is over goes on, and what it says can be read again", async () => {
  const room = new Room();
  const before = await room.enter();
  await before.record(seeded(r1));
  await room.obeyed("prepare");
  void before.boundary(r1).catch(() => {});
  await turns();
  expect(before.sessions.get(r1)?.status.work).toBe("parked");
  await before.stop();
  await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "lease" } });
  await room.decide({ type: "resume.ended", data: { command: 1, checkpointId: "c1" } });
  const agent = await room.enter();
  await agent.boundary(r1);
  const next = await room.enter();
  for (const process of [agent, next]) expect(process.sessions.get(r1)?.status.work).toBe("at_boundary");
});

test("[L9] an open checkpoint stays closed for the next process, whose sessions park at their boundaries", async () => {
  const room = new Room();
  const before = await room.enter();
  await before.record(seeded(r1));
  await room.obeyed("prepare");
  const agent = await room.enter();
  let isOn = false;
  const parked = agent.boundary(r1).then(() => (isOn = true));
  await turns();
  expect([agent.admission.isClosed, isOn, agent.sessions.get(r1)?.status.work]).toEqual([true, false, "parked"]);
  await room.resume();
  await parked;
});

test("[L1] the process before is fenced by the next one, and appends no more", async () => {
  const room = new Room();
  const before = await room.enter();
  await room.enter();
  await expect(before.record(seeded(r1))).rejects.toMatchObject({ code: "stale_attempt" });
  expect(room.fenced).toBe(1);
});

/** A log that was rolled back under its readers: a tail of it ends. */
class RolledBackLog extends MemoryLog {
  override async tail(...[options, deliver]: Parameters<MemoryLog["tail"]>) {
    const strict = (message: StoredMessage) => {
      if (message.sequence > 2) throw new Error("rolled back");
      deliver(message);
    };
    return super.tail(options, strict);
  }
}

test("[L15] a process that can no longer follow the control subject says that it has failed", async () => {
  const room = new Room(new RolledBackLog("HP_room"));
  const agent = await room.enter();
  await agent.record(seeded(r1));
  await room.ask("prepare");
  await turns();
  expect(room.failures).toMatchObject([{ message: "rolled back" }]);
});

test("a process that was told to stop does not call that a failure, and stays expected", async () => {
  const room = new Room();
  const agent = await room.enter();
  await agent.stop();
  await turns();
  expect([room.failures, await room.types()]).toEqual([[], ["participant.announced"]]);
});

test("a process that leaves says so as the last thing", async () => {
  const room = new Room();
  const agent = await room.enter();
  await agent.leave();
  expect((await room.types()).at(-1)).toBe("participant.left");
  expect(await room.log.lastOn(logSubject("room", writer))).toMatchObject({ controlPlane: true });
});

test("[L1] an idle process learns from the control subject that a successor takes part, or that it was removed", async () => {
  const place = { role: "agent", instance: "main", worker: "0" } as const;
  const joined = (incarnation: string): ControlEvent => ({
    type: "participant.joined",
    data: {
      ...place,
      incarnation,
      mode: "exported",
      endpoint: null,
      announcedSequence: 1,
      announcedAtMs: 0,
      lastAtMs: null,
    },
  });
  const ends: readonly ControlEvent[] = [
    joined("life-7"),
    { type: "participant.removed", data: { command: 1, ...place } },
  ];
  for (const end of ends) {
    const room = new Room();
    room.joins = false;
    await room.enter();
    await room.decide(joined("life-0")); // the one before: the coordinator is late
    await room.decide(joined("life-1"));
    await turns();
    expect(room.fenced).toBe(0);
    await room.decide(end);
    await turns();
    await room.decide(joined("life-8"));
    await turns();
    expect(room.fenced).toBe(1);
  }
});
