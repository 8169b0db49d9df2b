/** Sessions whose retirement did not come to its end: their attempts are refused, and they are still there. */
import type { RoleHooks } from "@holdpoint/participant";
import type { AgentEvent, Episode } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { type Agent, type Counter, episodeOf, Room, seeded, started } from "./room.ts";

type Hooks = RoleHooks<Counter, AgentEvent>;

const r1 = episodeOf("r1");
const r2 = episodeOf("r2");
const never = () => new Promise<never>(() => {});

/** An agent with `r1` at work and `r2` seeded; a retirement of `r1` has run into its deadline. */
async function halfRetired(hooks: Hooks = {}): Promise<{ room: Room; agent: Agent }> {
  const room = new Room();
  const agent = await room.enter({ hooks: { ...hooks, retire: never } });
  await agent.record(seeded(r1), started(r1), seeded(r2));
  await room.decide({ type: "rollouts.marked", data: { command: 7, rollouts: [r1] } });
  const answer = await room.obeyed("retire", { command: 7, checkpointId: null, rollouts: [r1], remainingMs: 10 });
  expect(answer.problem).toMatchObject({ code: "deadline_exceeded" });
  await room.decide({
    type: "command.failed",
    data: { command: 7, problem: { code: "deadline_exceeded", message: "late", details: {} } },
  });
  return { room, agent };
}

test("a session whose attempt is refused blocks no prepare, and is named by none", async () => {
  const waits = () => [{ ...r1, reason: "awaits the model", sinceMs: 0 }];
  const { room, agent } = await halfRetired({ blockers: waits });
  expect(agent.sessions.get(r1)?.status.work).toBe("running");
  const answer = await room.obeyed("prepare", { remainingMs: 10 });
  expect(answer).toMatchObject({ blockerCount: 0, continued: [r2], restarts: [] });
  expect(answer).not.toHaveProperty("problem");
  expect(await room.obeyed("capture", { scope: [r2] })).toMatchObject({ sessions: 1 });
});

test("a process that starts frees and ends the sessions whose attempts are refused, before it serves", async () => {
  const { room, agent } = await halfRetired();
  await agent.stop();
  const freed: (readonly Episode[])[] = [];
  const retire: Hooks["retire"] = async (marks) => {
    freed.push(marks);
    return [];
  };
  const next = await room.open();
  const { length } = await room.said();
  await next.serve({ methods: {}, hooks: { retire } });
  expect((await room.said()).slice(length)).toEqual([{ type: "session.retired", data: r1 }]);
  expect([freed, next.sessions.all().map(({ rollout }) => rollout)]).toEqual([[[r1]], ["r2"]]);
});

test("a process that starts keeps a refused session whose hook cannot free it, serves, and says so in its log", async () => {
  const { room, agent } = await halfRetired();
  await agent.stop();
  const next = await room.enter({ hooks: { retire: () => Promise.reject(new Error("no way")) } });
  expect(next.sessions.get(r1)).toBeDefined();
  expect(room.troubles).toContainEqual(expect.stringMatching(/were not freed.*no way/));
  expect(await room.obeyed("prepare")).toMatchObject({ blockerCount: 0, continued: [r2] });
});

test("[L4] a process that starts between captured and cut ends no refused session: it appends nothing", async () => {
  const { room } = await halfRetired();
  await room.obeyed("prepare");
  await room.obeyed("capture", { scope: [r2] });
  const { length } = await room.said();
  await room.enter();
  expect((await room.said()).slice(length).map(({ type }) => type)).toEqual(["participant.announced"]);
});
