/** The seeds of an agent's sessions: what is taken, what is bound anew, and what is written nowhere. */
import {
  type AgentInput,
  type AgentServing,
  type AgentSession,
  defineAgent,
  type ReboundSession,
} from "@holdpoint/participant";
import { type Access, logSubject } from "@holdpoint/schemas";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, until } from "./agent-room.ts";
import { episodeOf, turns, writer } from "./room.ts";

const r1 = episodeOf("r1");
const Seed = z.object({ task: z.string() });
type Seed = z.infer<typeof Seed>;

let room: AgentRoom;
beforeEach(async () => {
  room = await AgentRoom.open();
});
afterEach(() => room.model.stop());

function seeded(more: Partial<AgentInput<Seed>> = {}) {
  return defineAgent({
    name: "seeded",
    mode: "exported",
    seed: Seed,
    activate: async ({ access }) => `access ${access?.token}`,
    ...more,
  });
}

/** A session of task `a` that was restored as attempt 1; the restore is over. */
async function restoredSession(definition: ReturnType<typeof seeded>, serving: AgentServing = {}) {
  const agent = await room.agent(definition, serving);
  await room.seed(r1, { task: "a" });
  const cut = await room.checkpoint([r1], "c1", 1);
  await room.letGo("c1", 1);
  await room.done("retire", { command: 2, checkpointId: null, rollouts: [r1] });
  const again = await room.restored({ id: "x1", command: 3, source: "c1", cut, from: r1, to: 1 });
  await room.letGo("x1", 3);
  return { agent, again };
}

describe("[S12] a restored session of an agent without a re-bind hook", () => {
  test("accepts the seed that it had, and is claimed by it", async () => {
    const { agent, again } = await restoredSession(seeded());
    expect(agent.sessions.get(again)?.claimed).toBe(false);
    const reply = { ok: true, data: { terms: { rebinds: false }, restart: null } };
    expect(await room.seed(again, { task: "a" })).toEqual(reply);
    expect(await room.seed(again, { task: "a" })).toEqual(reply);
    expect(agent.sessions.get(again)?.claimed).toBe(true);
  });

  test("answers another one with session_conflict, and stays as it was", async () => {
    const { agent, again } = await restoredSession(seeded());
    const problem = { code: "session_conflict", message: expect.stringMatching(/seeded has no rebind hook/) };
    expect(await room.seed(again, { task: "b" })).toMatchObject({ ok: false, problem });
    expect(agent.sessions.get(again)?.claimed).toBe(false);
  });

  test("is not passed over by any other attempt", async () => {
    await restoredSession(seeded());
    expect(await room.seed(episodeOf("r1", 2), { task: "a" })).toMatchObject({ problem: { code: "session_conflict" } });
    expect(await room.seed(r1, { task: "a" })).toMatchObject({ problem: { code: "stale_attempt" } });
  });
});

describe("a re-bind hook", () => {
  const access: Access = { token: "secret-of-attempt-1", expiresAtMs: 5 };

  test("is called once for a replacement attempt, with its access, and may bind the session to another seed", async () => {
    const bound: ReboundSession<Seed>[] = [];
    const definition = seeded({ rebind: async (session) => void bound.push(session) });
    const { again } = await restoredSession(definition);
    expect(await room.seed(again, { task: "b" }, access)).toMatchObject({ data: { terms: { rebinds: true } } });
    await room.seed(again, { task: "b" }, access);
    expect(bound).toEqual([
      { episode: again, sessionId: "s", seed: { task: "b" }, previousSeed: { task: "a" }, access },
    ]);
    expect(await room.activate(again)).toMatchObject({ data: { output: { text: "access secret-of-attempt-1" } } });
  });

  test("is not called at a first seed, and a live session is not bound to anything else", async () => {
    let calls = 0;
    await room.agent(seeded({ rebind: async () => void (calls += 1) }));
    await room.seed(r1, { task: "a" });
    expect(await room.seed(r1, { task: "b" })).toMatchObject({ problem: { code: "session_conflict" } });
    expect(calls).toBe(0);
  });

  test("that fails leaves the session unclaimed, and is called again by the next seed", async () => {
    let calls = 0;
    const rebind = async () => {
      calls += 1;
      if (calls === 1) throw new Error("no such sandbox");
    };
    const { agent, again } = await restoredSession(seeded({ rebind }));
    expect(await room.seed(again, { task: "a" })).toMatchObject({ ok: false });
    expect(agent.sessions.get(again)?.claimed).toBe(false);
    expect(await room.seed(again, { task: "a" })).toMatchObject({ ok: true });
    expect([calls, agent.sessions.get(again)?.claimed]).toEqual([2, true]);
  });
});

describe("access", () => {
  const access: Access = { token: "very-secret", expiresAtMs: 5, mcpUrl: "http://127.0.0.1:1/mcp" };

  test("[F10] is in memory alone", async () => {
    await room.agent(seeded({ activate: async ({ access: given }) => `access ${given === undefined ? "no" : "yes"}` }));
    await room.seed(r1, { task: "a" }, access);
    expect(await room.activate(r1)).toMatchObject({ data: { output: { text: "access yes" } } });
    const written: string[] = [];
    const everything = { from: 1, upTo: await room.log.lastSequence(), subjects: [logSubject("room", writer)] };
    await room.log.read(everything, ({ body }) => void written.push(new TextDecoder().decode(body)));
    expect(written.join("\n")).toMatch(/session.seeded/);
    expect(written.join("\n")).not.toMatch(/very-secret|mcp/);
  });

  test("is asked for anew by a process that has lost it, before the activation goes on", async () => {
    const held = seeded({ activate: (session) => stopped(session) });
    const before = await room.agent(held);
    await room.seed(r1, { task: "a" }, access);
    void room.activate(r1);
    await until(async () => (await room.typesOf(r1)).includes("activation.started"));
    await before.stop();
    const agent = await room.agent(seeded());
    await until(() => agent.sessions.get(r1)?.state.output !== null);
    expect([agent.sessions.get(r1)?.state.output?.text, room.grants]).toEqual(["access granted-1", 1]);
  });

  test("that was never given is asked for by nobody, and can be had anew where it was", async () => {
    const definition = seeded({
      activate: async (session) => {
        const { token } = await session.renewAccess();
        return `${token} ${session.access?.token}`;
      },
    });
    await room.agent(definition);
    await room.seed(r1, { task: "a" });
    expect(room.grants).toBe(0);
    expect(await room.activate(r1)).toMatchObject({ data: { output: { text: "granted-1 granted-1" } } });
  });
});

function stopped({ signal }: AgentSession<Seed>): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
  });
}

describe("a session that no checkpoint can hold", () => {
  test("[S8] is marked in the message that makes it, and its seed says why", async () => {
    const definition = seeded({ capturable: ({ seed }) => (seed.task === "a" ? true : "its sandbox is not ours") });
    const agent = await room.agent(definition);
    expect(await room.seed(r1, { task: "b" })).toMatchObject({ data: { restart: "its sandbox is not ours" } });
    expect(await room.seed(r1, { task: "b" })).toMatchObject({ data: { restart: "its sandbox is not ours" } });
    await room.seed(episodeOf("r2"), { task: "a" });
    const messages = await room.messages();
    const types = messages
      .map((events) => events.map(({ type }) => type))
      .filter((said) => said[0] === "session.seeded");
    expect(types).toEqual([["session.seeded", "session.restart_marked"], ["session.seeded"]]);
    expect(await room.done("prepare", {})).toMatchObject({ restarts: [r1], continued: [episodeOf("r2")] });
    expect(agent.sessions.get(r1)?.status.restart).toBe(true);
  });

  test("is every one of an agent that is restart_only, whose seeds say so", async () => {
    await room.agent(defineAgent({ name: "fragile", seed: Seed, activate: async () => "done" }));
    expect(await room.seed(r1, { task: "a" })).toMatchObject({ data: { restart: "agent fragile is restart_only" } });
    expect(await room.done("prepare", {})).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
  });

  test("is refused where its hook says neither true nor why", async () => {
    const nothing = z.custom<true>();
    await room.agent(seeded({ capturable: () => nothing.parse(undefined) }));
    const problem = { code: "invalid_request", message: expect.stringMatching(/capturable of seeded/) };
    expect(await room.seed(r1, { task: "a" })).toMatchObject({ ok: false, problem });
    await turns();
    expect(await room.typesOf(r1)).toEqual([]); // [A15] nothing is left of it
  });

  test("is refused where its hook is async, and what that comes to is nobody's", async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => unhandled.push(error);
    process.on("unhandledRejection", note);
    try {
      const promised = z.custom<true>();
      const capturable = () => promised.parse(Promise.reject(new Error("no")));
      await room.agent(seeded({ capturable }));
      const problem = { code: "invalid_request", message: expect.stringMatching(/capturable of seeded.*a promise/) };
      expect(await room.seed(r1, { task: "a" })).toMatchObject({ ok: false, problem });
      await turns();
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", note);
    }
  });
});

test("[A7] an attempt that is refused, and is not freed yet, is in the way of no attempt after it", async () => {
  await room.agent(seeded());
  await room.seed(r1, { task: "a" });
  await room.decide({ type: "rollouts.marked", data: { command: 1, rollouts: [r1] } });
  await turns();
  expect(await room.seed({ ...r1, attempt: 1 }, { task: "a" })).toMatchObject({ ok: true });
});

test("a seed that is none is refused in words, and nothing is left of it", async () => {
  await room.agent(seeded());
  const problem = { code: "invalid_request", message: expect.stringMatching(/no seed of agent seeded[^]*task/) };
  expect(await room.seed(r1, { job: 1 })).toMatchObject({ ok: false, problem });
  expect(await room.typesOf(r1)).toEqual([]);
});

describe("an episode that has ended", () => {
  test("is not seeded any more by a seed that comes late", async () => {
    await room.agent(seeded());
    await room.seed(r1, { task: "a" });
    await room.call(r1, "close");
    expect(await room.seed(r1, { task: "a" })).toMatchObject({ ok: false, problem: { code: "stale_attempt" } });
    expect(await room.typesOf(r1)).toEqual(["session.seeded", "session.closed"]);
  });

  test("is not seeded by a seed that was under way when it was closed", async () => {
    const task = Promise.withResolvers<boolean>();
    let parsing = 0;
    const slowly = Seed.refine(() => {
      parsing += 1;
      return task.promise;
    });
    const agent = await room.agent(seeded({ seed: slowly }));
    const seeding = room.seed(r1, { task: "a" });
    await until(() => parsing > 0);
    const closing = room.call(r1, "close");
    await turns();
    task.resolve(true);
    expect(await closing).toMatchObject({ ok: true });
    expect(await seeding).toMatchObject({ ok: false, problem: { code: "stale_attempt" } });
    expect([agent.sessions.all(), await room.typesOf(r1)]).toEqual([[], ["session.closed"]]);
  });

  test("is not seeded by a seed that was held when it was closed", async () => {
    const agent = await room.agent(seeded());
    await room.obeyed("prepare");
    const seeding = room.seed(r1, { task: "a" });
    await turns();
    expect(await room.call(r1, "close")).toMatchObject({ ok: true });
    await room.letGo("c1", 1);
    expect(await seeding).toMatchObject({ ok: false, problem: { code: "stale_attempt" } });
    expect(agent.sessions.all()).toEqual([]);
  });

  test("is closed after a while though a re-bind hook never ends, and the hook makes no session of it later", async () => {
    const bound = Promise.withResolvers<void>();
    const rebind = () => bound.promise;
    const { agent, again } = await restoredSession(seeded({ rebind }), { graceMs: 20 });
    const seeding = room.seed(again, { task: "a" });
    await turns();
    expect(await room.call(again, "close")).toMatchObject({ ok: true });
    bound.resolve();
    expect(await seeding).toMatchObject({ ok: false, problem: { code: "stale_attempt" } });
    expect(agent.sessions.all()).toEqual([]);
  });
});

test("[C1] of two seeds at once that differ one is taken, and the other meets the session that it made", async () => {
  await room.agent(seeded());
  const replies = await Promise.all([room.seed(r1, { task: "a" }), room.seed(r1, { task: "b" })]);
  expect(replies).toMatchObject([{ ok: true }, { ok: false, problem: { code: "session_conflict" } }]);
  expect(await room.typesOf(r1)).toEqual(["session.seeded"]);
});
