/** Harnesses that run outside of the agent's process: here a process that counts. */
import { defineOpaqueAgent, type Harness, type HarnessSession, type OpaqueAgentInput } from "@holdpoint/participant";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, jsonOf, until } from "./agent-room.ts";
import { episodeOf, turns } from "./room.ts";

const program = fileURLToPath(new URL("fixtures/counting-harness.ts", import.meta.url));
const r1 = episodeOf("r1");
const Seed = z.object({ to: z.number() });
type Seed = z.infer<typeof Seed>;
const Count = z.object({ count: z.number() });
/** More than it ever counts in a test. */
const endless = { to: 1e9 };

let room: AgentRoom;
let children: {
  readonly url: string;
  readonly from: number;
  readonly token: string | undefined;
  readonly child: ChildProcess;
}[];
beforeEach(async () => {
  room = await AgentRoom.open();
  children = [];
});
afterEach(() => {
  room.model.stop();
  for (const { child } of children) child.kill("SIGKILL");
});

async function told(url: string, what: string): Promise<number> {
  const response = await fetch(`${url}/${what}`, { method: "POST" });
  return Count.parse(await response.json()).count;
}

function harnessAt(url: string): Harness {
  return {
    handle: url,
    done: told(url, "end").then((last) => `counted to ${last}`),
    pause: async () => void (await told(url, "pause")),
    continue: async () => void (await told(url, "continue")),
    state: async () => ({ count: await told(url, "state") }),
    stop: async () => {
      await fetch(`${url}/stop`, { method: "POST" }).catch(() => {});
      const child = children.find((one) => one.url === url)?.child;
      if (child !== undefined && child.exitCode === null) await once(child, "exit");
    },
  };
}

async function launch({ seed, continuation, access }: HarnessSession<Seed>): Promise<Harness> {
  const from = continuation === undefined ? 0 : Count.parse(continuation).count;
  const env = { COUNT_FROM: String(from), COUNT_TO: String(seed.to) };
  const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "inherit"] });
  const [printed]: unknown[] = await once(child.stdout, "data");
  const url = String(printed).trim();
  children.push({ url, from, token: access?.token, child });
  return harnessAt(url);
}

async function withoutState(session: HarnessSession<Seed>): Promise<Harness> {
  const { handle, done, ...harness } = await launch(session);
  return {
    handle,
    done,
    pause: () => harness.pause(),
    continue: () => harness.continue(),
    stop: () => harness.stop(),
  };
}

async function find(handle: string): Promise<Harness | undefined> {
  const isThere = await told(handle, "state").then(
    () => true,
    () => false,
  );
  return isThere ? harnessAt(handle) : undefined;
}

function counting(more: Partial<OpaqueAgentInput<Seed>> = {}) {
  return defineOpaqueAgent({ name: "counter", mode: "exported", seed: Seed, launch, find, ...more });
}

/** Of the harness that was launched last. */
async function count(): Promise<number> {
  return told(children.at(-1)?.url ?? "", "state");
}

/** Whether it counts on: seen to go on, or not seen to in many turns. */
async function expectCounting(): Promise<void> {
  const from = await count();
  await until(async () => (await count()) > from);
}

async function expectStanding(): Promise<void> {
  const from = await count();
  for (let look = 0; look < 20; look++) expect(await count()).toBe(from);
}

async function begin(seed: Seed = endless): Promise<void> {
  const before = children.length;
  await room.seed(r1, seed);
  void room.activate(r1);
  await until(() => children.length > before);
  await until(async () => (await room.typesOf(r1)).includes("harness.launched"));
}

async function kill(): Promise<void> {
  const child = children.at(-1)?.child;
  child?.kill("SIGKILL");
  if (child?.exitCode === null && child.signalCode === null) await once(child, "exit");
}

test("a harness runs to its end, and gives the output", async () => {
  await room.agent(counting());
  expect(await room.run(r1, { to: 5 })).toMatchObject({ data: { status: "ended", output: { text: "counted to 5" } } });
  const types = ["session.seeded", "activation.started", "harness.launched", "activation.ended"];
  expect(await room.typesOf(r1)).toEqual(types);
});

test("a harness stands while a checkpoint is open, and counts on after it", async () => {
  await room.agent(counting());
  await begin();
  await expectCounting();
  expect(await room.done("prepare", {})).toMatchObject({ blockerCount: 0, continued: [r1] });
  await expectStanding();
  expect(await room.typesOf(r1)).toContain("session.parked");
  await room.resume();
  await expectCounting();
});

test("[L5] a session of a harness says nothing of calls that it does not see, at a cut", async () => {
  await room.agent(counting());
  await begin();
  await room.checkpoint([r1], "c1", 1);
  const captured = (await room.saidOf(r1)).find(({ type }) => type === "session.captured");
  expect(captured?.data).toMatchObject({ edges: {} });
  await room.letGo("c1", 1);
});

describe("a checkpoint", () => {
  test("holds the state of a harness, and each restore launches one from it", async () => {
    const agent = await room.agent(counting());
    await begin();
    await expectCounting();
    const cut = await room.checkpoint([r1], "c1", 1);
    const held = agent.sessions.fixedIn("c1", r1)?.state.continuation?.boundary.text;
    expect(jsonOf(held)).toEqual({ count: await count() });
    await room.letGo("c1", 1);
    await expectCounting();
    await room.done("retire", { command: 2, checkpointId: null, rollouts: [r1] });
    expect(children[0]?.child.exitCode).toBe(0); // stopped, and waited for

    for (const [command, to] of [
      [3, 1],
      [4, 2],
    ] as const) {
      const next = await room.restored({ id: `x${command}`, command, source: "c1", cut, from: r1, to });
      await room.letGo(`x${command}`, command);
      const access = { token: `of attempt ${to}`, expiresAtMs: 1 };
      expect(await room.seed(next, endless, access)).toMatchObject({ data: { terms: { rebinds: true } } });
      void room.activate(next);
      await until(async () => (await room.typesOf(next)).includes("harness.launched"));
      expect({ count: children.at(-1)?.from }).toEqual(jsonOf(held));
      expect(children.at(-1)?.token).toBe(access.token);
      await expectCounting();
      await room.done("retire", { command: command + 10, checkpointId: null, rollouts: [next] });
    }
    expect(children).toHaveLength(3);
  });

  test("of an agent that is restart_only neither has its harness stand nor needs its state", async () => {
    await room.agent(counting({ mode: "restart_only", launch: withoutState }));
    await begin();
    expect(await room.done("prepare", {})).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
    await expectCounting();
    await room.resume();
  });

  test("[S7] is held up by no harness that gives no state: each of its sessions is a restart from its seed on", async () => {
    await room.agent(counting({ mode: "stateless", launch: withoutState }));
    const why = expect.stringMatching(/counter give no state/);
    expect(await room.seed(r1, endless)).toMatchObject({ data: { restart: why } });
    await begin();
    expect(await room.done("prepare", {})).toMatchObject({ blockerCount: 0, restarts: [r1], continued: [] });
    await expectCounting();
    await room.resume();
  });
});

describe("the process that comes after a crash of the agent", () => {
  test("[L9] finds the harness that runs on, and launches none beside it", async () => {
    const before = await room.agent(counting());
    await begin();
    await before.stop();
    await room.agent(counting());
    await expectCounting();
    expect(await room.done("prepare", {})).toMatchObject({ blockerCount: 0, continued: [r1] });
    await expectStanding();
    await room.resume();
    await expectCounting();
    await room.call(r1, "close");
    expect([children.length, children[0]?.child.exitCode]).toEqual([1, 0]);
  });

  test("[L9] has a harness stand on that it finds standing for a checkpoint, and go on after it", async () => {
    const before = await room.agent(counting());
    await begin();
    await room.done("prepare", {});
    await before.stop();
    await room.agent(counting());
    await expectStanding();
    await room.resume();
    await expectCounting();
    expect((await room.typesOf(r1)).filter((type) => type === "session.parked")).toHaveLength(1);
  });

  test("[L9] has a harness go on that it finds standing, where the checkpoint is over by then", async () => {
    const before = await room.agent(counting());
    await begin();
    await room.done("prepare", {});
    await before.stop();
    await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
    await room.decide({ type: "resume.ended", data: { command: 1, checkpointId: "c1" } });
    await expectStanding();
    const agent = await room.agent(counting());
    await expectCounting();
    expect(agent.sessions.get(r1)?.status.work).toBe("at_boundary");
  });

  test("[L3] launches none from what was exported, where the harness is gone with what it did since: the session is a restart", async () => {
    const before = await room.agent(counting());
    await begin();
    await expectCounting();
    await room.checkpoint([r1], "c1", 1);
    await room.letGo("c1", 1);
    await before.stop();
    await kill();
    const agent = await room.agent(counting());
    await until(() => agent.sessions.get(r1)?.status.restart === true);
    const problem = { code: "invalid_checkpoint_state", message: expect.stringMatching(/harness of r1.*did since/) };
    expect(await room.activate(r1)).toMatchObject({ ok: false, problem });
    expect(children).toHaveLength(1);
  });

  test("[L3] never starts a harness over that is gone with all that it did: the session is a restart", async () => {
    const before = await room.agent(counting());
    await begin();
    await before.stop();
    await kill();
    const agent = await room.agent(counting());
    await until(() => agent.sessions.get(r1)?.status.restart === true);
    const problem = { code: "invalid_checkpoint_state", message: expect.stringMatching(/harness of r1.*is gone/) };
    expect(await room.activate(r1)).toMatchObject({ ok: false, problem });
    expect(children).toHaveLength(1);
    expect((await room.typesOf(r1)).filter((type) => type === "session.restart_marked")).toHaveLength(1);
    expect(await room.seed(r1, endless)).toMatchObject({ data: { restart: expect.stringMatching(/is gone/) } });
  });
});

test("a session that is closed stops its harness, and waits until it has stopped", async () => {
  await room.agent(counting());
  await begin();
  await room.call(r1, "close");
  expect(children[0]?.child.exitCode).toBe(0);
});

test("[S13] what is no harness is refused by the name of its definition", async () => {
  const nothing = z.custom<Harness>();
  const parts = { handle: "h", done: new Promise(() => {}), pause: 1, stop: async () => {} };
  await room.agent(counting({ launch: async () => nothing.parse(parts) }));
  const message = expect.stringMatching(/launch of counter[^]*pause[^]*continue[^]*state/);
  expect(await room.run(r1, endless)).toMatchObject({ ok: false, problem: { code: "invalid_request", message } });
  await turns();
  expect(await room.typesOf(r1)).not.toContain("harness.launched");
});
