/** Events to the bytes of a message and back. */
import { decodeEvents, encodeEvents, eventSchema, parseJson, type StoredMessage } from "@holdpoint/eventsourcing";
import { controlPlaneTypes, logEvents, ParticipantEvent, schemaVersion } from "@holdpoint/schemas";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const agentEvents = eventSchema(logEvents.agent);

function message(body: string | Uint8Array): StoredMessage {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const subject = "hp.demo.log.agent.main.0";
  return { sequence: 7, subject, timeMs: 1_000.5, messageId: "m", controlPlane: false, body: bytes };
}

function envelope(...events: readonly unknown[]): StoredMessage {
  return message(JSON.stringify({ schema: schemaVersion, incarnation: "i1", events }));
}

const closed = { type: "session.closed", data: { rollout: "r", attempt: 0 } };
const started = { type: "activation.started", data: { rollout: "r", attempt: 0 } };
const unheardOf = { type: "session.teleported", data: { rollout: 1 } };

describe("what is encoded", () => {
  const token = fc.stringMatching(/^[a-z0-9]{1,8}$/);
  const anyEvent = fc.record({
    type: fc.constantFrom("session.closed", "activation.started"),
    data: fc.record({ rollout: token, attempt: fc.nat() }),
  });

  test("is decoded as it was, with the place of each event", () => {
    fc.assert(
      fc.property(fc.array(anyEvent), token, (events, incarnation) => {
        const { body } = encodeEvents(incarnation, events);
        const decoded = decodeEvents(message(body), agentEvents);
        const place = { sequence: 7, subject: "hp.demo.log.agent.main.0", timeMs: 1_000.5, incarnation };
        expect(decoded).toEqual({ events: events.map((event, index) => ({ ...place, event, index })), problems: [] });
      }),
    );
  });

  test("concerns the control plane if one of its events does", () => {
    expect(encodeEvents("i1", []).controlPlane).toBe(false);
    expect(encodeEvents("i1", [started, closed]).controlPlane).toBe(false);
    for (const type of controlPlaneTypes) {
      expect(encodeEvents("i1", [started, { type, data: {} }, closed]).controlPlane).toBe(true);
    }
  });

  test("says which version of the schema it follows", () => {
    expect(JSON.parse(encodeEvents("i1", [closed]).body)).toEqual({ schema: 1, incarnation: "i1", events: [closed] });
  });
});

describe("decoding", () => {
  test("passes over types that it does not know, and keeps the places of the others", () => {
    const { events, problems } = decodeEvents(envelope(unheardOf, started, unheardOf, closed), agentEvents);
    expect(events.map(({ event, index }) => [index, event.type])).toEqual([
      [1, "activation.started"],
      [3, "session.closed"],
    ]);
    expect(problems).toEqual([]);
  });

  test("drops fields that it does not know", () => {
    const { events } = decodeEvents(envelope({ ...closed, note: 1, data: { ...closed.data, note: 2 } }), agentEvents);
    expect(events.map(({ event }) => event)).toEqual([closed]);
  });

  test("names what an event of a known type gets wrong, and reads the others", () => {
    const wrong = { type: "session.closed", data: { rollout: "r", attempt: -1 } };
    const { events, problems } = decodeEvents(envelope(started, wrong, closed), agentEvents);
    expect(events.map(({ index }) => index)).toEqual([0, 2]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("sequence 7 on hp.demo.log.agent.main.0, event 1 (session.closed)");
    expect(problems[0]).toContain("data.attempt");
  });

  test.each([
    { what: "bytes that are no UTF-8", body: new Uint8Array([0x22, 0xff, 0x22]), why: "not UTF-8" },
    { what: "a text that is no JSON", body: "{", why: "not JSON: SyntaxError" },
    { what: "nothing", body: "", why: "not JSON: SyntaxError" },
    { what: "a value that is no object", body: "[]", why: "not an envelope: " },
    { what: "an object without events", body: `{"schema":1,"incarnation":"i1"}`, why: "events" },
    { what: "null", body: "null", why: "not an envelope: " },
    { what: "an envelope of no version", body: `{"schema":0,"incarnation":"i1","events":[]}`, why: "schema" },
    { what: "an envelope of half a version", body: `{"schema":0.5,"incarnation":"i1","events":[]}`, why: "schema" },
    {
      what: "an envelope whose version is a text",
      body: `{"schema":"1","incarnation":"i1","events":[]}`,
      why: "schema",
    },
    { what: "an envelope of no process", body: `{"schema":1,"events":[]}`, why: "incarnation" },
    {
      what: "an envelope of a process with no id",
      body: `{"schema":1,"incarnation":"","events":[]}`,
      why: "incarnation",
    },
    { what: "events that are no list", body: `{"schema":1,"incarnation":"i1","events":{}}`, why: "events" },
    {
      what: "an envelope of a later version",
      body: `{"schema":2,"incarnation":"i1","events":[]}`,
      why: "written under schema 2; this version reads up to 1",
    },
  ])("finds no event in $what, and says so with the place", ({ body, why }) => {
    const { events, problems } = decodeEvents(message(body), agentEvents);
    expect(events).toEqual([]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^sequence 7 on hp\.demo\.log\.agent\.main\.0: /);
    expect(problems[0]).toContain(why);
  });

  test.each([
    { what: "null", event: null },
    { what: "a number", event: 1 },
    { what: "an event without a type", event: { data: {} } },
    { what: "an event whose type is no text", event: { type: 1, data: {} } },
    { what: "an event without data", event: { type: "session.closed" } },
    { what: "an event whose data is null", event: { type: "session.closed", data: null } },
    { what: "an event whose data is a list", event: { type: "session.closed", data: [] } },
    { what: "an event whose data is a text", event: { type: "session.closed", data: "x" } },
  ])("refuses an envelope with $what beside good events, and says which it is", ({ event }) => {
    const { events, problems } = decodeEvents(envelope(started, event), agentEvents);
    expect(events).toEqual([]);
    expect(problems).toEqual([expect.stringMatching(/ 7 on .*: not an envelope: [^]*events\[1\]/)]);
  });

  test("never throws, whatever the bytes", () => {
    const bytes = fc.oneof(
      fc.uint8Array(),
      fc.json().map((text) => new TextEncoder().encode(text)),
    );
    fc.assert(
      fc.property(bytes, (body) => {
        const { events, problems } = decodeEvents(message(body), agentEvents);
        expect(events).toEqual([]);
        expect(problems.length).toBeLessThanOrEqual(1);
      }),
    );
  });
});

test("the schema of a union knows its types", () => {
  const { types } = eventSchema(ParticipantEvent);
  expect(types.has("participant.announced")).toBe(true);
  expect(types.has("session.closed")).toBe(false);
  expect(types.size).toBe(ParticipantEvent.options.length);
});

function readJson(text: string) {
  return parseJson(new TextEncoder().encode(text));
}

test("JSON is read as the value that it says", () => {
  expect(readJson(' {"a": [1, null]} ')).toEqual({ ok: true, value: { a: [1, null] } });
  expect(readJson("null")).toEqual({ ok: true, value: null });
  expect(readJson('"é"')).toEqual({ ok: true, value: "é" });
  expect(readJson("nul")).toMatchObject({ ok: false });
});
