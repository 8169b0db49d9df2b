/** What a turn costs: as much as every other. */
import { MemoryLog } from "@holdpoint/eventsourcing";
import { type AgentSession, defineAgent, sha256 } from "@holdpoint/participant";
import { logSubject } from "@holdpoint/schemas";
import { queryObjects } from "node:v8";
import { expect, test } from "vitest";
import * as z from "zod";
import { agentKind, type AgentState } from "../src/agent/agent-state.ts";
import { Replay } from "../src/agent/replay.ts";
import { latestFirst, noSteps, type Step, withStep } from "../src/agent/steps.ts";
import { AgentRoom, ask, until } from "./agent-room.ts";
import { episodeOf, writer } from "./room.ts";

const r1 = episodeOf("r1");

function agentOf(activate: (session: AgentSession<unknown>) => Promise<string>) {
  return defineAgent({ name: "writer", mode: "exported", seed: z.unknown(), activate });
}

/** A log that knows how many bytes each message of the agent has. */
class WeighedLog extends MemoryLog {
  readonly bytes: number[] = [];
  override append(...[draft]: Parameters<MemoryLog["append"]>) {
    if (draft.subject === logSubject("room", writer)) this.bytes.push(draft.body.length);
    return super.append(draft);
  }
}

/** Turns that each ask the same, and one tool call after each. */
function turning(count: number) {
  return agentOf(async (session) => {
    for (let turn = 0; turn < count; turn++) {
      await session.model(ask());
      await session.tool("look", "{}");
    }
    return "done";
  });
}

test("[F3] what a turn appends does not depend on how many were before it", async () => {
  const log = new WeighedLog("HP_room");
  const weighed = await AgentRoom.open(log);
  weighed.model.reply = () => ({ role: "assistant", content: "well" });
  await weighed.agent(turning(120));
  await weighed.run(r1);
  await until(async () => (await weighed.typesOf(r1)).includes("activation.ended"));
  weighed.model.stop();
  const turnsOf = (from: number) => log.bytes.slice(from, from + 30).reduce((sum, bytes) => sum + bytes, 0);
  const [early, late] = [turnsOf(33), turnsOf(303)]; // turns 10 to 19, and 100 to 109: one digit more in each of three events
  expect(late - early).toBe(30);
});

const many = 10_000;

test("[F4] ten thousand turns are answered from the log, and nothing of them is done again", async () => {
  const room = await AgentRoom.open();
  room.model.stop(); // it is not asked
  const idle = agentOf(() => new Promise(() => {}));
  const before = await room.agent(idle);
  await room.seed(r1);
  await before.record({ type: "activation.started", data: { ...r1, policyVersion: 3 } });
  for (let at = 0; at < many; at += 200) {
    await before.record(...Array.from({ length: 200 }, (_, turn) => history(at + turn)).flat());
  }
  await before.stop();
  const agent = await room.agent(turning(many));
  await until(() => agent.sessions.get(r1)?.state.output !== null);
  expect([room.model.asked, room.tools]).toEqual([[], []]);
});

test("[F4] turn 10,000 takes as many digests, and as many steps looked at, as turn 10", () => {
  let digests = 0;
  let looks = 0;
  const kind = agentKind(
    (text) => {
      digests += 1;
      return sha256(text);
    },
    { isOpaque: false },
  );
  const at = { sequence: 1, index: 0, subject: "", timeMs: 0, incarnation: "" };
  const evolve = (state: AgentState, turn: number) =>
    history(turn).reduce((next, event) => kind.evolve(next, event, { event, ...at }), state);
  const seededEvent = { type: "session.seeded" as const, data: { ...r1, sessionId: "s", seed: content("") } };
  let state = kind.open(seededEvent, { event: seededEvent, ...at });
  const costs: number[] = [];
  for (let turn = 0; turn < many && state !== undefined; turn++) {
    digests = 0;
    state = evolve(state, turn);
    costs.push(digests);
  }
  expect([costs[10], costs.at(-1)]).toEqual([2, 2]);

  const counted = [...latestFirst(state?.steps ?? noSteps)].map((step) => counting(step, () => (looks += 1)));
  const replay = new Replay("writer", r1, { steps: counted.toReversed().reduce(withStep, noSteps) });
  const looked = Array.from({ length: many }, (_, turn) => {
    looks = 0;
    replay.call(turn, sha256(JSON.stringify(ask())));
    replay.tool({ turn, index: 0, name: "look", arguments: sha256("{}") });
    return looks;
  });
  expect([looked[10], replay.isOver]).toEqual([looked.at(-1), true]);
});

/** The step, whose every reading is counted. */
function counting(step: Step, look: () => void): Step {
  return new Proxy(step, {
    get: (target, name) => {
      look();
      const value: unknown = Reflect.get(target, name);
      return value;
    },
  });
}

function content(text: string) {
  return { digest: sha256(text), bytes: text.length, text };
}

function history(turn: number) {
  const response = content(JSON.stringify({ role: "assistant", content: "well" }));
  const request = sha256(JSON.stringify(ask()));
  const tool = { name: "look", arguments: sha256("{}"), result: content("there") };
  return [
    { type: "call.requested" as const, data: { ...r1, turn, request } },
    { type: "call.received" as const, data: { ...r1, turn, response } },
    { type: "tool.returned" as const, data: { ...r1, turn, index: 0, ...tool } },
  ];
}

test("whoever asks again and again for an activation that runs leaves nothing behind in it", async () => {
  const room = await AgentRoom.open();
  await room.agent(
    agentOf(() => new Promise(() => {})),
    { pollMs: 0 },
  );
  await room.seed(r1);
  const poll = async (count: number) => {
    for (let at = 0; at < count; at++) expect(await room.activate(r1)).toMatchObject({ data: { status: "running" } });
    return queryObjects(Promise, { format: "count" });
  };
  const before = await poll(10);
  const polls = 100;
  expect((await poll(polls)) - before).toBeLessThan(polls / 2);
  room.model.stop();
});
