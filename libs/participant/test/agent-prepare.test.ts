/** What an agent's process keeps a checkpoint waiting for, also where a process before it died in the midst of a step. */
import { type AgentSession, defineAgent, messageText } from "@holdpoint/participant";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, ask, until } from "./agent-room.ts";
import { episodeOf, turns } from "./room.ts";

const r1 = episodeOf("r1");

function agentOf(activate: (session: AgentSession<unknown>) => Promise<string>) {
  return defineAgent({ name: "writer", mode: "exported", seed: z.unknown(), activate });
}

const never = () => new Promise<never>(() => {});

let room: AgentRoom;
beforeEach(async () => {
  room = await AgentRoom.open();
});
afterEach(() => room.model.stop());

/** Asks the model once. */
const asking = agentOf(async (session) => messageText(await session.model(ask())));

describe("at a prepare", () => {
  test("[L5] a call that a process before has asked is asked again before the session parks", async () => {
    room.model.holds = () => true;
    const before = await room.agent(asking);
    void room.run(r1);
    await until(() => room.model.asked.length === 1);
    await before.stop();
    const asked = await room.ask("prepare");
    await room.agent(asking);
    await until(() => room.model.asked.length === 2);
    expect(await room.typesOf(r1)).not.toContain("session.parked");
    room.model.close();
    expect(await room.answerTo(asked)).toMatchObject({ blockerCount: 0, continued: [r1] });
    expect(await room.typesOf(r1)).toContain("session.parked");
    await room.letGo("c1", 1);
  });

  test("[L5] a tool call that may be under way is waited for, also where its session was parked before it", async () => {
    const definition = agentOf(async (session) => {
      await session.tool("look", "1");
      await session.boundary(() => 1);
      const seen = await session.tool("look", "2");
      await session.boundary(() => 2);
      return seen;
    });
    const first = Promise.withResolvers<string>();
    room.tool = (_, input) => (input === "1" ? first.promise : never());
    const before = await room.agent(definition);
    void room.run(r1);
    await until(() => room.tools.length === 1);
    const asked = await room.ask("prepare");
    await turns();
    first.resolve("seen");
    expect(await room.answerTo(asked)).toMatchObject({ blockerCount: 0, continued: [r1] });
    await room.letGo("c1", 1);
    await until(() => room.tools.length === 2);
    await before.stop();
    await room.ask("prepare", { checkpointId: "c2", command: 2 });
    await room.agent(definition);
    await until(() => room.tools.length === 3);
    expect((await room.typesOf(r1)).filter((type) => type === "session.parked")).toHaveLength(1);
  });

  test("[L5] a tool call that may be under way is waited for, also where the next step was a boundary", async () => {
    const definition = agentOf(async (session) => {
      await session.model(ask());
      await session.boundary(() => null);
      return session.tool("look", "{}");
    });
    room.tool = never;
    const before = await room.agent(definition);
    void room.run(r1);
    await until(() => room.tools.length === 1);
    await before.stop();
    const gate = Promise.withResolvers<string>();
    room.tool = () => gate.promise;
    const asked = await room.ask("prepare");
    await room.agent(definition);
    await until(() => room.tools.length === 2);
    expect(await room.typesOf(r1)).not.toContain("session.parked");
    gate.resolve("there");
    expect(await room.answerTo(asked)).toMatchObject({ blockerCount: 0 });
  });
});

const calling = async (session: AgentSession<unknown>) => {
  await session.model(ask());
  return session.tool("look", "{}");
};

/** Runs r1 to its end while closed. @returns what its calls said */
async function runsWhileClosed() {
  const asked = await room.ask("prepare");
  await turns();
  room.model.close(); // it answers restarts all the same
  expect(await room.activate(r1)).toMatchObject({ data: { status: "ended" } });
  expect(await room.answerTo(asked)).toMatchObject({ restarts: [r1], continued: [] });
  return [room.tools, room.model.asked.map(({ headers }) => headers["x-holdpoint-restart"])];
}

describe("[S7] a restart says so in its calls, which are made while a checkpoint is open,", () => {
  const said = [["look({}) as 0/0, a restart"], ["1"]];

  test("where its author says that it is one", async () => {
    await room.agent(
      defineAgent({
        name: "r",
        mode: "exported",
        seed: z.unknown(),
        capturable: () => "it cannot be paused",
        activate: calling,
      }),
    );
    await room.seed(r1);
    expect(await runsWhileClosed()).toEqual(said);
  });

  test("where its agent is restart_only", async () => {
    await room.agent(defineAgent({ name: "r", seed: z.unknown(), activate: calling }));
    await room.seed(r1);
    expect(await runsWhileClosed()).toEqual(said);
  });

  test("where its seed was in flight when admission closed", async () => {
    const parsed = Promise.withResolvers<boolean>();
    const seed = z.unknown().refine(() => parsed.promise);
    await room.agent(defineAgent({ name: "r", mode: "exported", seed, activate: calling }));
    const seeding = room.seed(r1);
    await turns();
    const asked = await room.ask("prepare");
    await room.answerTo(asked);
    parsed.resolve(true);
    expect(await seeding).toMatchObject({ ok: true });
    room.model.close();
    expect(await room.activate(r1)).toMatchObject({ data: { status: "ended" } });
    expect(room.tools).toEqual(said[0]);
  });

  test("and no other session does", async () => {
    await room.agent(agentOf(calling));
    await room.seed(r1);
    expect(await room.activate(r1)).toMatchObject({ data: { status: "ended" } });
    expect(room.tools).toEqual(["look({}) as 0/0"]);
  });
});
