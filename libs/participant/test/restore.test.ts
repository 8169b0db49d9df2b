import { MemoryLog, type ReadOptions, type StoredMessage } from "@holdpoint/eventsourcing";
import { logSubject } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { type Agent, type AnswerData, episodeOf, received, Room, seeded, turns, writer } from "./room.ts";

const r1 = episodeOf("r1");
const r2 = episodeOf("r2");
const again = episodeOf("r1", 1);

interface Fixed {
  readonly room: Room;
  readonly agent: Agent;
  readonly cut: number;
  readonly captured: AnswerData;
}

/** A room in which `c1` fixed r1 after one call and r2 after none; r1 went on since. */
async function fixed(room = new Room()): Promise<Fixed> {
  const agent = await room.enter();
  await agent.record(seeded(r1), seeded(r2));
  await agent.record(received(r1, 0));
  await room.obeyed("prepare");
  const captured = await room.obeyed("capture", { scope: [r1, r2] });
  const cut = await room.cut([r1, r2]);
  await room.obeyed("proceed");
  await agent.record(received(r1, 1), { type: "session.closed", data: r2 });
  await room.resume();
  return { room, agent, cut, captured };
}

function restoring({ cut }: Fixed, { id = "x1", to = 1 } = {}) {
  const assignments = [
    { rollout: "r1", from: 0, to },
    { rollout: "r2", from: 0, to },
  ];
  return { command: 10 + to, checkpointId: id, source: "c1", cut: { HP_room: cut }, assignments };
}

async function begin(stood: Fixed, options: { id?: string; to?: number } = {}): Promise<AnswerData> {
  const { command, checkpointId, source, cut, assignments } = restoring(stood, options);
  const data = { command, checkpointId, source, cut, assignments };
  await stood.room.decide({ type: "restore.started", data });
  return stood.room.obeyed("restore", data);
}

async function install({ room }: Fixed, { id = "x1", to = 1 } = {}): Promise<void> {
  const data = { command: 10 + to, checkpointId: id, source: "c1", receipt: [] };
  await room.decide({ type: "restore.installed", data });
  await room.resume({ checkpointId: id, command: 10 + to });
}

test("[L7] sessions go on under the new attempt once the restore is installed, with what the checkpoint fixed", async () => {
  const stood = await fixed();
  const { room, agent, captured } = stood;
  expect(await begin(stood)).toMatchObject({
    digest: captured.digest,
    sessions: 2,
    installed: [again, episodeOf("r2", 1)],
  });
  expect(agent.sessions.get(again)).toBeUndefined();
  await expect(agent.record(received(r1, 2))).resolves.toBeUndefined();
  await install(stood);
  expect(agent.sessions.get(again)).toMatchObject({ claimed: false, state: { calls: 1 } });
  await expect(agent.record(received(r1, 3))).rejects.toMatchObject({ code: "stale_attempt" });
  const next = await room.enter();
  const standing = [again, episodeOf("r2", 1)].map((episode) => agent.sessions.get(episode));
  expect(next.sessions.all()).toEqual(standing); // what was superseded ends with the next start
});

test("[A18] a restore that failed leaves nothing, and its sessions go on as they were", async () => {
  const stood = await fixed();
  const { room, agent } = stood;
  await begin(stood);
  const problem = { code: "unavailable" as const, message: "the model is away" };
  const data = { command: 11, checkpointId: "x1", source: "c1", problem };
  await room.decide({ type: "restore.failed", data });
  await room.resume({ checkpointId: "x1", command: 11 });
  const next = await room.enter();
  for (const process of [agent, next]) {
    expect(process.sessions.pendingOf("x1")).toEqual([]);
    expect(process.sessions.all()).toMatchObject([{ ...r1, state: { calls: 2 } }]);
    expect(process.admission.isClosed).toBe(false);
  }
  await next.record(received(r1, 2));
});

test("[A11] a checkpoint that is restored twice gives two attempts with the same state", async () => {
  const stood = await fixed();
  await begin(stood);
  await install(stood);
  await stood.agent.record(seeded(again), received(again, 1));
  await begin(stood, { id: "x2", to: 2 });
  await install(stood, { id: "x2", to: 2 });
  expect(stood.agent.sessions.get(episodeOf("r1", 2))).toMatchObject({ claimed: false, state: { calls: 1 } });
  expect(stood.agent.sessions.get(again)).toMatchObject({ claimed: true, state: { calls: 2 } });
  await expect(stood.agent.record(received(again, 2))).rejects.toMatchObject({ code: "stale_attempt" });
});

test("[A8] [S1] a checkpoint after a restore holds the restored sessions that nobody has claimed, as they were", async () => {
  const stood = await fixed();
  const { room, agent } = stood;
  await begin(stood);
  await install(stood);
  const prepared = await room.obeyed("prepare", { checkpointId: "c2", command: 20 });
  expect(prepared).toMatchObject({ blockerCount: 0, continued: [again, episodeOf("r2", 1)] });
  const scope = [again, episodeOf("r2", 1)];
  expect(await room.obeyed("capture", { checkpointId: "c2", command: 20, scope })).toMatchObject({ sessions: 2 });
  expect(agent.sessions.fixedBy("c2")).toMatchObject([
    { ...again, claimed: false, state: { calls: 1 } },
    { ...episodeOf("r2", 1), claimed: false, state: { calls: 0 } },
  ]);
});

test("[C4] a restore whose hook finds something wrong installs nothing", async () => {
  const stood = await fixed();
  await stood.agent.stop();
  const agent = await stood.room.enter({ hooks: { restore: () => Promise.reject(new Error("a snapshot is gone")) } });
  const answer = await begin(stood);
  expect(answer.problem).toMatchObject({ code: "unavailable" });
  expect(answer).not.toHaveProperty("installed");
  expect(agent.sessions.pendingOf("x1")).toEqual([]);
});

/** A log in which one message is not what it was. */
class DamagedLog extends MemoryLog {
  damage: (message: StoredMessage) => StoredMessage | undefined = (message) => message;

  override read(options: ReadOptions, deliver: (message: StoredMessage) => void): Promise<void> {
    return super.read(options, (message) => {
      const found = this.damage(message);
      if (found !== undefined) deliver(found);
    });
  }
}

function isCall({ subject, body }: StoredMessage): boolean {
  return subject === logSubject("room", writer) && new TextDecoder().decode(body).includes("call.received");
}

test("[L15] an event that cannot be read any more fails the restore, with its place", async () => {
  const log = new DamagedLog("HP_room");
  const stood = await fixed(new Room(log));
  log.damage = (message) => {
    if (!isCall(message)) return message;
    const body = new TextDecoder().decode(message.body).replace('"turn":', '"torn":');
    return { ...message, body: new TextEncoder().encode(body) };
  };
  const { problem } = await answerWith(log, stood, await stood.room.ask("restore", restoring(stood)));
  expect(problem).toMatchObject({ code: "invalid_checkpoint_state" });
  expect(problem?.message).toMatch(/sequence \d+ on hp\.room\.log\.agent\.main\.0/);
});

test("[L15] an event that is missing is found by the digest", async () => {
  const log = new DamagedLog("HP_room");
  const stood = await fixed(new Room(log));
  log.damage = (message) => (isCall(message) ? undefined : message);
  const { digest, sessions } = await answerWith(log, stood, await stood.room.ask("restore", restoring(stood)));
  expect(sessions).toBe(2);
  expect(digest).not.toBe(stood.captured.digest);
});

test("[L15] a log that ends before the cut, and a cut that says nothing of this stream, are invalid", async () => {
  const stood = await fixed();
  for (const cut of [{ HP_room: 10_000 }, { HP_other: stood.cut }]) {
    const answer = await stood.room.obeyed("restore", { ...restoring(stood), cut });
    expect(answer.problem).toMatchObject({ code: "invalid_checkpoint_state" });
  }
  expect(stood.agent.sessions.all()).toMatchObject([r1]);
});

/** The answer, given while the log is damaged and read when it is not. */
async function answerWith(log: DamagedLog, { room, agent }: Fixed, asked: number): Promise<AnswerData> {
  while (agent.gate.asks.some(({ sequence }) => sequence === asked)) await turns(1);
  log.damage = (message) => message;
  return room.answerTo(asked);
}
