/** Events and requests on the wire: tolerant readers of what has happened, strict readers of what is asked. */
import { errorCodes } from "@holdpoint/errors";
import {
  ControlEvent,
  controlPlaneTypes,
  Envelope,
  logEvents,
  Outcome,
  ParticipantEvent,
  Problem,
  rpcMethods,
  RpcReply,
  SeedRequest,
} from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";
import type * as z from "zod";

const digest = "0".repeat(64);
const episode = { rollout: "r", attempt: 0 };

function typesOf(union: {
  readonly options: readonly { readonly shape: { readonly type: { readonly value: string } } }[];
}) {
  return union.options.map((option) => option.shape.type.value);
}

const unions = Object.entries({ control: ControlEvent, ...logEvents }).map(([name, union]) => ({
  name,
  types: typesOf(union),
}));

test.each(unions)("each type stands for one thing on $name", ({ types }) => {
  expect(types).toEqual([...new Set(types)]);
  for (const type of types) expect(type).toMatch(/^[a-z]+\.[a-z_]+$/);
});

test("every process may say on its log what participants say", () => {
  for (const union of Object.values(logEvents))
    expect(typesOf(union)).toEqual(expect.arrayContaining(typesOf(ParticipantEvent)));
});

test("what the coordinator has to read is something that a process may say", () => {
  const known = new Set(Object.values(logEvents).flatMap((union) => typesOf(union)));
  expect([...controlPlaneTypes].filter((type) => !known.has(type))).toEqual([]);
});

describe("an event", () => {
  const parked = { type: "session.parked", data: { ...episode, checkpointId: "c1" } };

  test("with fields that this version does not know is read without them", () => {
    const newer = { type: parked.type, data: { ...parked.data, since: 1 }, note: "x" };
    expect(ParticipantEvent.parse(newer)).toEqual(parked);
  });

  test("that lacks a field is none", () => {
    expect(ParticipantEvent.safeParse({ type: "session.parked", data: episode }).success).toBe(false);
    expect(ParticipantEvent.safeParse({ type: "session.parked" }).success).toBe(false);
  });
});

test("an envelope names its schema version from 1, its writer's life and any events", () => {
  const envelope = { schema: 1, incarnation: "i1", events: [{ type: "anything", data: { any: ["thing"] } }] };
  expect(Envelope.parse(envelope)).toEqual(envelope);
  for (const wrong of [
    { schema: 0 },
    { schema: 1.5 },
    { incarnation: "a.b" },
    { events: {} },
    { events: [{ type: "x" }] },
  ]) {
    expect(Envelope.safeParse({ ...envelope, ...wrong }).success).toBe(false);
  }
});

test("a problem has a code of the closed set", () => {
  for (const code of errorCodes) expect(Problem.safeParse({ code, message: "" }).success).toBe(true);
  expect(Problem.safeParse({ code: "teapot", message: "" }).success).toBe(false);
});

test("an outcome that is not ok says why, and may say what was learnt before", () => {
  const problem = { code: "invalid_phase", message: "not now" };
  const result = { phase: "idle", checkpointId: null };
  expect(Outcome.safeParse({ ok: false, command: 1, operation: "commit", problem }).success).toBe(true);
  expect(Outcome.safeParse({ ok: false, command: 1, operation: "commit", problem, result }).success).toBe(true);
  expect(Outcome.safeParse({ ok: false, command: 1, operation: "commit", result }).success).toBe(false);
  expect(Outcome.safeParse({ ok: true, command: 1, operation: "commit" }).success).toBe(false);
  expect(Outcome.safeParse({ ok: true, command: 0, operation: "commit", result }).success).toBe(false);
});

const methodsOfRoles: Readonly<Record<string, Readonly<Record<string, { readonly request: z.ZodType }>>>> = rpcMethods;

describe("a request", () => {
  const requests = Object.entries(methodsOfRoles).flatMap(([role, methods]) =>
    Object.entries(methods).map(([name, { request }]) => ({ name: `${role}.${name}`, request })),
  );

  test.each(requests)("$name is refused with a field that it does not know", ({ request }) => {
    const parsed = request.safeParse({ unheardOf: 1 });
    expect(parsed.error?.issues.map(({ code }) => code)).toContain("unrecognized_keys");
  });

  test.each(requests.filter(({ name }) => name !== "environment.seed"))(
    "$name may name the instance that is meant",
    ({ request }) => {
      const paths = (to: unknown) => request.safeParse({ to }).error?.issues.map(({ path }) => path[0]) ?? [];
      expect(paths("main")).not.toContain("to");
      expect(paths("a.b")).toContain("to");
    },
  );

  test("to seed carries any JSON value, and nothing that is none", () => {
    const seed = { ...episode, sessionId: "s-r" };
    for (const value of [null, 0, "", [], { deep: [{ er: [null] }] }]) {
      expect(SeedRequest.safeParse({ ...seed, seed: value }).success).toBe(true);
    }
    expect(SeedRequest.safeParse({ ...seed, seed: undefined }).success).toBe(false);
    expect(SeedRequest.safeParse({ ...seed, seed: Number.NaN }).success).toBe(false);
  });
});

test("a reply gives data or a problem", () => {
  expect(RpcReply.safeParse({ ok: true, data: { result: { digest, bytes: 0 } } }).success).toBe(true);
  expect(RpcReply.safeParse({ ok: false, problem: { code: "not_found", message: "gone" } }).success).toBe(true);
  expect(RpcReply.safeParse({ ok: false, data: {} }).success).toBe(false);
});
