/** Two workers of one agent: who answers, and who goes on with what the other held. */
import { type AnyMethod, method } from "@holdpoint/participant";
import { filters, rpcSubject, seedSubject } from "@holdpoint/schemas";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { type Agent, type AnswerData, episodeOf, received, Room, seeded, turns } from "./room.ts";

interface Pair {
  readonly room: Room;
  readonly workers: Agent[];
  /** `<worker>: <what it was asked for>`, in order. */
  readonly asked: string[];
}

/** A first seed that takes until `seeding` says so. */
function methodsOf(
  at: () => Agent | undefined,
  asked: string[],
  seeding: () => Promise<void>,
): Record<string, AnyMethod> {
  const name = () => at()?.options.worker ?? "?";
  const seedMethod = method({
    body: z.looseObject({}),
    whileClosed: "held",
    seeds: true,
    handle: async (episode) => {
      asked.push(`${name()}: seed ${episode.rollout}`);
      await seeding();
      if (at()?.sessions.get(episode) === undefined) await at()?.record(seeded(episode));
      return { by: name() };
    },
  });
  const workMethod = method({
    body: z.looseObject({}),
    whileClosed: "refused",
    handle: async (episode) => {
      asked.push(`${name()}: work ${episode.rollout}`);
      return { by: name() };
    },
  });
  return { seed: seedMethod, work: workMethod };
}

async function pair(seeding: () => Promise<void> = async () => {}): Promise<Pair> {
  const room = new Room();
  const asked: string[] = [];
  const workers: Agent[] = [];
  for (const worker of ["0", "1"]) {
    let agent: Agent | undefined;
    agent = await room.enter({ worker, methods: methodsOf(() => agent, asked, seeding) });
    workers.push(agent);
  }
  await turns();
  return { room, workers, asked };
}

function seed(room: Room, rollout: string): Promise<unknown> {
  return room.request(seedSubject("room", "agent", "main"), { rollout, attempt: 0 });
}

function work(room: Room, rollout: string): Promise<unknown> {
  return room.request(rpcSubject("room", episodeOf(rollout), "agent", "work"), { to: "main" });
}

const rollouts = ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];

describe("a request", () => {
  test("for a new session is taken by one worker, and they share the rollouts", async () => {
    const { room, workers, asked } = await pair();
    for (const rollout of rollouts) await seed(room, rollout);
    expect(asked).toHaveLength(rollouts.length);
    const held = workers.map(({ sessions }) => sessions.all().length);
    expect(held.reduce((sum, count) => sum + count, 0)).toBe(rollouts.length);
    for (const count of held) expect(count).toBeGreaterThan(0);
  });

  test("on a session reaches whoever holds it, a repeated seed as well", async () => {
    const { room, workers } = await pair();
    for (const rollout of rollouts) {
      const first = await seed(room, rollout);
      expect(await seed(room, rollout)).toEqual(first);
      expect(await work(room, rollout)).toEqual(first);
    }
    expect(workers.flatMap(({ sessions }) => sessions.all())).toHaveLength(rollouts.length);
  });

  test("on a session that nobody holds is answered so, once", async () => {
    const { room, asked } = await pair();
    expect(await work(room, "r9")).toMatchObject({ ok: false, problem: { code: "not_found" } });
    expect(asked).toEqual([]);
  });

  test("that comes before a worker takes part is answered with the word to ask again: it may not be alone", async () => {
    const room = new Room();
    room.joins = false;
    const asked: string[] = [];
    for (const worker of ["0", "1"]) {
      let agent: Agent | undefined;
      agent = await room.enter({
        worker,
        methods: methodsOf(
          () => agent,
          asked,
          async () => {},
        ),
      });
    }
    expect(await seed(room, "r1")).toMatchObject({ ok: false, problem: { code: "unavailable" } });
    expect(asked).toEqual([]);
    await room.join("0", "life-1");
    await room.join("1", "life-2");
    await turns();
    await seed(room, "r1");
    expect(asked).toHaveLength(1);
  });

  test("for a session that is being made reaches who makes it, also while the workers change", async () => {
    const going = Promise.withResolvers<void>();
    const { room, workers } = await pair(() => going.promise);
    const first = rollouts.map((rollout) => seed(room, rollout));
    await turns(5);
    await room.join("00"); // which would pick others, and never answers
    const second = rollouts.map((rollout) => seed(room, rollout));
    await turns(5);
    going.resolve();
    expect(await Promise.all(second)).toEqual(await Promise.all(first));
    expect(workers.flatMap(({ sessions }) => sessions.all())).toHaveLength(rollouts.length);
  });
});

/** Both workers obey it. */
async function obeyed(room: Room, ...order: Parameters<Room["ask"]>): Promise<void> {
  const asked = await room.ask(...order);
  await Promise.all(["0", "1"].map((worker) => room.answerTo(asked, worker)));
}

describe("a first seed that is held", () => {
  test("is made once, also where a worker joins meanwhile that would be picked", async () => {
    const { room, workers, asked } = await pair();
    await obeyed(room, "prepare");
    const first = rollouts.map((rollout) => seed(room, rollout));
    await turns(5);
    const enter = async () => {
      let agent: Agent | undefined;
      const methods = methodsOf(
        () => agent,
        asked,
        async () => {},
      );
      agent = await room.enter({ worker: "00", methods });
      return agent;
    };
    const all = [...workers, await enter()];
    const again = rollouts.map((rollout) => seed(room, rollout));
    await turns();
    await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
    await obeyed(room, "resume");
    expect(await Promise.all(again)).toEqual(await Promise.all(first));
    const made = all.flatMap(({ sessions }) => sessions.all().map(({ rollout }) => rollout));
    expect(made.toSorted()).toEqual(rollouts);
  });
});

test("a close that comes while a seed is passed on to another worker is told to come back, not that there is nothing", async () => {
  const room = new Room();
  const through = { body: z.looseObject({}), whileClosed: "through" as const };
  const methods = {
    seed: method({ ...through, seeds: true, handle: async () => ({}) }),
    close: method({ ...through, ends: true, handle: async () => ({}) }),
  };
  await room.enter({ worker: "0", methods });
  const passed: string[] = [];
  await room.messenger.subscribe(filters.rpcOf("room", "agent"), ({ data, subject, respond }) => {
    const { worker } = z
      .looseObject({ worker: z.string().optional() })
      .parse(JSON.parse(new TextDecoder().decode(data)));
    if (worker === "1" && subject.endsWith(".seed")) passed.push(subject);
    else if (worker === "1") respond(JSON.stringify({ ok: true, data: { holds: false } }));
  });
  await room.join("1");
  await turns();
  for (const rollout of rollouts) void seed(room, rollout);
  await vi.waitFor(() => expect(passed.length).toBeGreaterThan(0));
  const rollout = rollouts.find((one) => passed[0]?.includes(`.${one}.`)) ?? "";
  const close = (name: string) => room.request(rpcSubject("room", episodeOf(name), "agent", "close"), { to: "main" });
  expect(await close(rollout)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
  expect(await close("never")).toMatchObject({ ok: false, problem: { code: "not_found" } });
});

test("[S16] prepare closes every worker, and resume opens every worker", async () => {
  const { room, workers } = await pair();
  const closed = () => workers.map(({ admission }) => admission.isClosed);
  const asked = await room.ask("prepare");
  await Promise.all(["0", "1"].map((worker) => room.answerTo(asked, worker)));
  expect(closed()).toEqual([true, true]);
  await room.decide({ type: "checkpoint.resumed", data: { command: 1, checkpointId: "c1", reason: "command" } });
  const resumed = await room.ask("resume");
  await Promise.all(["0", "1"].map((worker) => room.answerTo(resumed, worker)));
  await turns();
  expect(closed()).toEqual([false, false]);
});

/** Worker 1 holds r1 after two calls, c1 has fixed it, and worker 1 is gone. */
async function orphaned(): Promise<Pair & { readonly cut: number; readonly digest: string | undefined }> {
  const made = await pair();
  const { room, workers } = made;
  const [, gone] = workers;
  await gone?.record(seeded(episodeOf("r1")), received(episodeOf("r1"), 0), received(episodeOf("r1"), 1));
  const prepare = await room.ask("prepare");
  await Promise.all(["0", "1"].map((worker) => room.answerTo(prepare, worker)));
  const capture = await room.ask("capture", { scope: [episodeOf("r1")] });
  const [, captured] = await Promise.all(["0", "1"].map((worker) => room.answerTo(capture, worker)));
  const cut = await room.cut([episodeOf("r1")]);
  await room.resume();
  await gone?.stop();
  await room.decide({
    type: "participant.removed",
    data: { command: 2, role: "agent", instance: "main", worker: "1" },
  });
  return { ...made, cut, digest: captured?.digest };
}

interface Restoring {
  readonly id: string;
  readonly source: string;
  readonly cut: number;
  readonly from: number;
  readonly to: number;
}

/** The restore of r1, by `worker`, of what `of` held. */
async function restored(room: Room, restoring: Restoring, { worker = "0", of = "1" } = {}) {
  const asked = await asking(room, restoring, { worker, of });
  return installed(room, restoring, await room.answerTo(asked, worker));
}

/** @returns the sequence of the ask */
async function asking(room: Room, { id, source, cut, from, to }: Restoring, { worker = "0", of = "1" } = {}) {
  const data = {
    command: 10 + to,
    checkpointId: id,
    source,
    cut: { HP_room: cut },
    assignments: [{ rollout: "r1", from, to }],
    adoptions: [{ role: "agent" as const, instance: "main", worker, of }],
  };
  await room.decide({ type: "restore.started", data });
  return room.ask("restore", data);
}

async function installed(room: Room, { id, source, to }: Restoring, answer: AnswerData): Promise<AnswerData> {
  await room.decide({
    type: "restore.installed",
    data: { command: 10 + to, checkpointId: id, source, receipt: [] },
  });
  await turns();
  return answer;
}

describe("what a worker held that is gone", () => {
  test("another one finds in the log, to the same digest, and goes on with", async () => {
    const { room, workers, cut, digest } = await orphaned();
    const answer = await restored(room, { id: "x1", source: "c1", cut, from: 0, to: 1 });
    expect(answer).toMatchObject({ sessions: 0, adopted: [{ worker: "1", digest }], installed: [episodeOf("r1", 1)] });
    const session = workers[0]?.sessions.get(episodeOf("r1", 1));
    expect([session?.state.calls, session?.from]).toEqual([2, { attempt: 0, source: "c1" }]);
  });

  test("[L9] it still holds after a crash of its own, with and without a snapshot of its fold", async () => {
    const { room, workers, cut } = await orphaned();
    await restored(room, { id: "x1", source: "c1", cut, from: 0, to: 1 });
    await workers[0]?.record(seeded(episodeOf("r1", 1)), received(episodeOf("r1", 1), 2));
    await workers[0]?.stop();
    for (let life = 0; life < 2; life++) {
      const successor = await room.enter();
      expect(successor.sessions.get(episodeOf("r1", 1))?.state.calls).toBe(3);
      await successor.stop();
    }
  });

  /** Enough for a start to save a snapshot. */
  const many = 1_000;

  test("[L9] it still holds after a second crash, where a snapshot was saved behind the ask that gave it", async () => {
    const { room, workers, cut } = await orphaned();
    const [adopter] = workers;
    await adopter?.record(seeded(episodeOf("own")));
    for (let turn = 0; turn < many; turn++) await adopter?.record(received(episodeOf("own"), turn));
    await adopter?.stop();
    const restoring = { id: "x1", source: "c1", cut, from: 0, to: 1 };
    const asked = await asking(room, restoring);
    const second = await room.enter();
    await installed(room, restoring, await room.answerTo(asked));
    expect([...room.snapshots.saved.keys()]).toEqual(["agent.main.0"]);
    await second.stop();
    const third = await room.enter();
    for (const process of [second, third]) expect(process.sessions.get(episodeOf("r1", 1))?.state.calls).toBe(2);
    await room.resume({ checkpointId: "x1", command: 11 });
    await room.obeyed("prepare", { checkpointId: "c2", command: 20 });
    const again = episodeOf("r1", 1);
    const captured = await room.obeyed("capture", { checkpointId: "c2", command: 20, scope: [again] });
    const last = await room.cut([again], { checkpointId: "c2", command: 20 });
    await room.resume({ checkpointId: "c2", command: 21 });
    await third.stop();
    const other = await room.enter({ worker: "2" });
    const of = { id: "x2", source: "c2", cut: last, from: 1, to: 2 };
    const answer = await restored(room, of, { worker: "2", of: "0" });
    expect(answer.adopted).toEqual([{ worker: "0", digest: captured.digest }]);
    expect(other.sessions.get(episodeOf("r1", 2))?.state.calls).toBe(2);
  });

  test("a third one can take over from the second: histories are paths through logs", async () => {
    const { room, workers, cut } = await orphaned();
    await restored(room, { id: "x1", source: "c1", cut, from: 0, to: 1 });
    const again = episodeOf("r1", 1);
    await room.resume({ checkpointId: "x1", command: 11 });
    await workers[0]?.record(seeded(again), received(again, 2));
    await room.obeyed("prepare", { checkpointId: "c2", command: 20 });
    const captured = await room.obeyed("capture", { checkpointId: "c2", command: 20, scope: [again] });
    const second = await room.cut([again], { checkpointId: "c2", command: 20 });
    await room.resume({ checkpointId: "c2", command: 21 });
    await workers[0]?.stop();
    const third = await room.enter({ worker: "2" });
    const answer = await restored(
      room,
      { id: "x2", source: "c2", cut: second, from: 1, to: 2 },
      { worker: "2", of: "0" },
    );
    expect(answer.adopted).toEqual([{ worker: "0", digest: captured.digest }]);
    expect(third.sessions.get(episodeOf("r1", 2))?.state.calls).toBe(3);
  });
});
