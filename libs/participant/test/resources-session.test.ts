import { sha256 } from "@holdpoint/participant";
import type { Episode } from "@holdpoint/schemas";
import { deserialize, serialize } from "node:v8";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { callOf, noCalls, withCall } from "../src/resources/call-index.ts";
import { type Event, finishedCall, resourcesKind, type ResourcesSession } from "../src/resources/resources-session.ts";

const episode: Episode = { rollout: "r", attempt: 0 };
const content = { digest: sha256(""), bytes: 0, text: "" };
const kind = resourcesKind({ hash: sha256, evolve: (state, change) => Number(state) + Number(change) });

function recorded(event: Event, sequence: number, timeMs = sequence) {
  return { event, sequence, timeMs, index: 0, subject: "", incarnation: "" };
}

function opened(): ResourcesSession {
  const event: Event = {
    type: "session.seeded",
    data: { ...episode, sessionId: "s", seed: content, sandbox: null, state: 0 },
  };
  const session = kind.open(event, recorded(event, 1));
  if (session === undefined) throw new Error("no session");
  return session;
}

function evolved(session: ResourcesSession, event: Event, sequence: number): ResourcesSession {
  return kind.evolve(session, event, recorded(event, sequence));
}

function called(session: ResourcesSession, turn: number, caller?: "mcp"): ResourcesSession {
  const by = caller === undefined ? {} : { caller };
  const call = { ...episode, turn, index: 0, ...by };
  const started = { ...call, name: "add", arguments: sha256("{}"), snapshot: null };
  const next = evolved(session, { type: "tool.started", data: started }, 2 * turn + 2);
  const finished = { ...call, execution: "e", result: content, change: 1 };
  return evolved(next, { type: "tool.finished", data: finished }, 2 * turn + 3);
}

function direct(turn: number) {
  return { caller: undefined, turn, index: 0, key: undefined };
}

test("calls are found again by their names, each with its own, and a value is never changed by the next", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 40 })), (names) => {
      let index = noCalls as ReturnType<typeof withCall<number>>;
      const known = new Map<string, number>();
      for (const [at, name] of names.entries()) {
        const before = index;
        const digest = sha256(`${name}`);
        const had = known.get(digest);
        index = withCall(index, digest, at);
        expect(callOf(before, digest)).toBe(had);
        known.set(digest, at);
      }
      for (const [digest, at] of known) expect(callOf(index, digest)).toBe(at);
      expect(callOf(index, sha256("another"))).toBe(undefined);
    }),
  );
});

test("[F3] [F4] a summary is as small after ten thousand calls as after ten, and a snapshot keeps every one of them", () => {
  let session = opened();
  for (let turn = 0; turn < 10; turn += 1) session = called(session, turn);
  const few = JSON.stringify(kind.summary(session)).length;
  for (let turn = 10; turn < 10_000; turn += 1) session = called(session, turn);
  expect(JSON.stringify(kind.summary(session)).length).toBeLessThan(few + 20);
  expect(session).toMatchObject({ state: 10_000, calls: { received: 10_000 } });
  const loaded: ResourcesSession = deserialize(serialize(session));
  expect(finishedCall(loaded, direct(4_321), sha256)).toMatchObject({ turn: 4_321, sequence: 8_645 });
  expect(kind.summary(loaded)).toEqual(kind.summary(session));
});

test("calls over MCP that nobody can name again are not kept, and are not counted as an agent's", () => {
  let session = opened();
  for (let turn = 0; turn < 5; turn += 1) session = called(session, turn, "mcp");
  expect(session).toMatchObject({ mcpCalls: 5, state: 5 });
  expect(session.finished).toEqual({ children: {} });
  expect(kind.edges(session)).toEqual({ tools: { received: 0, last: null } });
});

test("a change that cannot be folded any more loses its session, and nothing else", () => {
  const strict = resourcesKind({
    hash: sha256,
    evolve: () => {
      throw new Error("what is this");
    },
  });
  const session = called(opened(), 0);
  const event: Event = {
    type: "tool.finished",
    data: { ...episode, turn: 1, index: 0, execution: "e", result: content, change: 1 },
  };
  expect(strict.evolve(session, event, recorded(event, 9))).toMatchObject({
    state: 1,
    lost: "its recorded changes cannot be folded: state.evolve threw (Error)",
  });
});

test("[S2] grants that have expired are forgotten, the oldest of too many as well, and a checkpoint holds none", () => {
  let session = opened();
  const issue = (at: number, expiresAtMs: number) => {
    session = evolved(session, { type: "grant.issued", data: { ...episode, grant: sha256(`${at}`), expiresAtMs } }, at);
  };
  issue(10, 20);
  issue(15, 40);
  issue(25, 50);
  expect(session.grants.map(({ expiresAtMs }) => expiresAtMs)).toEqual([40, 50]);
  for (let at = 26; at < 42; at += 1) issue(at, 1_000 + at);
  expect(session.grants).toHaveLength(16);
  expect(session.grants[0]?.expiresAtMs).toBe(1_026);
  expect(kind.fix(session).grants).toEqual([]);
  expect(kind.summary(kind.fix(session))).toEqual(kind.summary(session));
});
