/** Hooks that do not look at their signal, or throw anything: they hold up nothing but themselves. */
import type { RoleHooks } from "@holdpoint/participant";
import type { AgentEvent } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { type Agent, type Ask, type Counter, episodeOf, received, Room, seeded, turns } from "./room.ts";

const r1 = episodeOf("r1");

/** A hook that goes on for ever, until `end`. */
function endless() {
  const ending = Promise.withResolvers<readonly AgentEvent[]>();
  let calls = 0;
  const hook = () => {
    calls += 1;
    return ending.promise;
  };
  return { hook, end: () => ending.resolve([received(r1, 0)]), calls: () => calls };
}

async function roomWith(hooks: RoleHooks<Counter, AgentEvent>): Promise<{ room: Room; agent: Agent }> {
  const room = new Room();
  const agent = await room.enter({ hooks });
  await agent.record(seeded(r1));
  return { room, agent };
}

/** What is asked before, and what the ask itself says. */
const orders: readonly (readonly [Ask["operation"] & keyof RoleHooks<Counter, AgentEvent>, boolean, Partial<Ask>])[] = [
  ["capture", true, { scope: [r1] }],
  ["commit", true, {}],
  ["restore", false, { checkpointId: "x1", source: "c1", cut: { HP_room: 1 }, assignments: [] }],
  ["retire", false, { checkpointId: null, rollouts: [r1] }],
  ["release", false, { kept: [], dropped: [] }],
];

test.each(orders)(
  "a hook of an ask to %s that ignores its deadline is left to itself: the ask fails, and the next one is obeyed",
  async (operation, isPrepared, rest) => {
    const { hook, end, calls } = endless();
    const { room, agent } = await roomWith({ [operation]: hook });
    if (isPrepared) await room.obeyed("prepare");
    const answer = await room.obeyed(operation, { command: 2, ...rest, remainingMs: 10 });
    expect(answer.problem).toMatchObject({ code: "deadline_exceeded" });
    expect(calls()).toBe(1);
    await room.resume();
    await room.obeyed("prepare", { checkpointId: "c9", command: 9 });
    const { length } = await room.said();
    end();
    await turns();
    expect((await room.said()).length).toBe(length); // nothing of what it gives at last counts
    expect([agent.sessions.get(r1)?.state.calls, room.troubles]).toEqual([0, []]);
  },
);

test("[L4] a capture whose hook ignores that it is over lets the process go on", async () => {
  const { hook, end } = endless();
  const { room, agent } = await roomWith({ capture: hook });
  await room.obeyed("prepare");
  await room.ask("capture", { scope: [r1] });
  await turns();
  const call = agent.record(received(r1, 0));
  await room.resume();
  await call;
  await room.obeyed("prepare", { checkpointId: "c2", command: 2 });
  end();
  await turns();
  expect([agent.gate.fixed, agent.sessions.fixedBy("c1")]).toEqual([undefined, []]);
});

test("what a hook throws that has no code stands in the log of the process, and not in its answer", async () => {
  const { room } = await roomWith({ retire: () => Promise.reject(new Error("https://there/?key=sk-secret")) });
  const answer = await room.obeyed("retire", { checkpointId: null, rollouts: [r1] });
  expect(answer.problem).toMatchObject({ code: "unavailable" });
  expect(JSON.stringify(await room.said())).not.toContain("secret");
  expect(room.troubles).toEqual([expect.stringContaining("sk-secret")]);
});
