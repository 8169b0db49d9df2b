/** Episodes whose agent, or resources server, or a worker of it, will not come back. */
import { describe, expect, test } from "vitest";
import { Room } from "./environment-room.ts";

const r1 = { rollout: "r1", attempt: 0 };
const nobody = { problem: { code: "not_found", message: "no session of r1, attempt 0, is here" } };

/** r1 runs up to `step`, which is in flight; agent and resources have two workers each. */
async function at(step: string): Promise<Room> {
  const room = new Room();
  room.replies[step] = undefined;
  await room.servants();
  await room.enter();
  await room.join(["agent", "0"], ["agent", "1"], ["resources", "0"], ["resources", "1"]);
  await room.dispatch("r1");
  await room.untilAsked(`${step} r1/0`);
  return room;
}

/** Why r1 is a restart; undefined: it is none. */
async function mark(room: Room): Promise<string | undefined> {
  await room.turns();
  return (await room.said()).flatMap(({ type, data }) => (type === "session.restart_marked" ? [data.why] : []))[0];
}

describe("[A19] an episode is a restart from there on", () => {
  test("whose agent was removed as a whole", async () => {
    const room = await at("agent activate");
    room.holders["agent"] = "1";
    await room.remove("agent", "0");
    expect(await mark(room)).toBeUndefined();
    await room.remove("agent", "1");
    expect(await mark(room)).toBe("agent main is not expected any more");
  });

  test.each(["agent", "resources"] as const)(
    "whose %s has lost the worker that held it, and no other",
    async (role) => {
      const room = await at("agent activate");
      await room.remove(role, "1");
      expect(await mark(room)).toBeUndefined();
      await room.join([role, "1"]);
      room.holders[role] = undefined;
      await room.remove(role, "0");
      expect(await mark(room)).toBe(`no worker of ${role} main that is expected holds its session`);
      expect(await room.obeyed("prepare", "c1")).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
    },
  );

  test("also where the environment died before it knew what went with a worker", async () => {
    const room = await at("agent activate");
    await room.remove("resources", "1");
    expect(await mark(room)).toBeUndefined();
    room.holders["resources"] = undefined; // as the one before would have been told, had it lived
    await room.enter();
    expect(await mark(room)).toBe("no worker of resources main that is expected holds its session");
  });
});

test("an environment that starts where no worker was ever lost asks nobody, and its prepare waits for nobody", async () => {
  const room = await at("agent activate");
  room.holders["resources"] = undefined;
  await room.enter();
  expect(await room.obeyed("prepare", "c1")).toMatchObject({ blockerCount: 0, restarts: [], continued: [r1] });
});

test("an agent that has closed its session is not missed", async () => {
  const room = await at("resources verify");
  room.holders["agent"] = undefined;
  await room.remove("agent", "0");
  expect(await mark(room)).toBeUndefined();
});

describe("[L9] work on a session that nobody holds", () => {
  test.each(["agent activate", "resources verify"])("waits for who has held it to come back: %s", async (step) => {
    const [role = "", method = ""] = step.split(" ");
    const room = await at(step);
    room.holders[role] = undefined;
    room.replies[step] = nobody;
    room.answer();
    expect(await mark(room)).toBe(`no worker of ${role} main that is expected holds its session`);
    expect((await room.said()).map(({ type }) => type)).not.toContain("episode.ended");
    room.replies[step] = new Room().replies[method];
    await room.join(role === "agent" ? ["agent", "0"] : ["resources", "0"]);
    expect(await room.ending()).toMatchObject({ status: "finished", reward: 1 });
  });

  test("is no reason to wait where somebody does, and says not_found of something else: that is a failure", async () => {
    const room = await at("resources verify");
    room.replies["resources verify"] = { problem: { code: "not_found", message: "no such file" } };
    room.answer();
    expect(await room.ending()).toMatchObject({ status: "failed", reward: null, why: "no such file" });
    expect(await mark(room)).toBeUndefined();
  });
});
