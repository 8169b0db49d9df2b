/** Episodes as the environment's log tells them. */
import { chargeAt, episodeKind, type EpisodeState, nextStep, parkedSpans } from "@holdpoint/episode";
import type { Recorded } from "@holdpoint/eventsourcing";
import type { Content, EnvironmentEvent, ParticipantEvent, SeedTerms } from "@holdpoint/schemas";
import { describe, expect, test } from "vitest";

type Event = EnvironmentEvent | ParticipantEvent;
type Bookmark = Omit<Extract<EnvironmentEvent, { type: "episode.bookmarked" }>["data"], "rollout" | "attempt">;

const episode = { rollout: "r", attempt: 0 };
const parking = { ...episode, checkpointId: "c1" };

function content(of: string): Content {
  return { digest: of.repeat(64), bytes: 1, text: of };
}

const openedData = {
  ...episode,
  sessionId: "s-r",
  task: content("a"),
  agent: "main",
  resources: "main",
  budgetMs: 30_000,
  policyVersion: 3,
};

const terms: SeedTerms = { verify: "replay", rebinds: true, sandboxLent: true, grantsBound: false };

function at(timeMs: number, event: Event): Recorded<Event> {
  return { event, sequence: timeMs, index: 0, subject: "s", timeMs, incarnation: "i" };
}

function bookmarked(data: Bookmark): Event {
  return { type: "episode.bookmarked", data: { ...episode, ...data } };
}

function opened(more: Partial<typeof openedData> = {}): Event {
  return { type: "episode.opened", data: { ...openedData, ...more } };
}

const parked: Event = { type: "session.parked", data: parking };
const unparked: Event = { type: "session.unparked", data: parking };

function charged(chargedMs: number): Event {
  return { type: "episode.charged", data: { ...episode, chargedMs } };
}

/** An episode opened at 100, after these events at these instants. */
function after(...events: readonly (readonly [number, Event])[]): EpisodeState {
  return evolved(start(), ...events);
}

function start(): EpisodeState {
  const first = at(100, opened());
  const state = episodeKind.open(first.event, first);
  if (state === undefined) throw new Error("expected an episode");
  return state;
}

function evolved(state: EpisodeState, ...events: readonly (readonly [number, Event])[]): EpisodeState {
  return events.reduce((known, [timeMs, event]) => episodeKind.evolve(known, event, at(timeMs, event)), state);
}

describe("an episode", () => {
  test("is opened by its dispatch alone, and has used nothing up", () => {
    expect(start()).toEqual({
      sessionId: "s-r",
      task: content("a"),
      agent: "main",
      resources: "main",
      budgetMs: 30_000,
      policyVersion: 3,
      stage: "none",
      terms: null,
      output: null,
      verdict: null,
      chargedMs: 0,
      sinceMs: 100,
      isReplacement: false,
      parkedSinceMs: null,
      parked: [],
    });
    for (const event of [parked, charged(1), bookmarked({ stage: "seed" })]) {
      expect(episodeKind.open(event, at(1, event))).toBeUndefined();
    }
  });

  test("stands at its latest bookmark, and keeps what earlier ones gave", () => {
    const state = after(
      [110, bookmarked({ stage: "seed" })],
      [120, bookmarked({ stage: "invoke_agent", terms })],
      [130, bookmarked({ stage: "close_agent", output: content("b") })],
      [140, bookmarked({ stage: "verify" })],
      [150, bookmarked({ stage: "return", verdict: content("c") })],
    );
    expect(state).toMatchObject({ stage: "return", terms, output: content("b"), verdict: content("c"), sinceMs: 100 });
  });

  test("has terms, output and verdict only from the bookmark that says them", () => {
    const state = after([110, bookmarked({ stage: "seed" })], [120, bookmarked({ stage: "invoke_agent", terms })]);
    expect(state).toMatchObject({ stage: "invoke_agent", terms, output: null, verdict: null });
  });

  test("is left as it is by events that say nothing of it", () => {
    const state = after([110, bookmarked({ stage: "seed" })]);
    const marked: Event = { type: "session.restart_marked", data: { ...episode, why: "no" } };
    expect(evolved(state, [120, marked], [130, { type: "participant.left", data: {} }])).toBe(state);
  });
});

describe("[S3] the time of an episode", () => {
  test("is counted anew from each sample, which holds all that came before", () => {
    const state = after([200, charged(100)], [300, charged(150)]);
    expect(state).toMatchObject({ chargedMs: 150, sinceMs: 300, parked: [] });
    expect(chargeAt(state, 340, [])).toBe(190);
  });

  test("has the spans that it stood parked, also the one that has not ended", () => {
    const state = after([200, parked], [250, unparked], [400, parked]);
    expect(parkedSpans(state, 430)).toEqual([
      { fromMs: 200, toMs: 250 },
      { fromMs: 400, toMs: 430 },
    ]);
    expect(chargeAt(state, 430, parkedSpans(state, 430))).toBe(250);
    expect(parkedSpans(after([200, parked], [250, unparked]), 430)).toEqual([{ fromMs: 200, toMs: 250 }]);
    expect(parkedSpans(start(), 430)).toEqual([]);
  });

  test("is let go on once: an end without a beginning is none", () => {
    expect(after([250, unparked]).parked).toEqual([]);
    expect(after([200, parked], [250, unparked], [260, unparked]).parked).toEqual([{ fromMs: 200, toMs: 250 }]);
  });

  test("that was parked over a sample is charged neither before nor after it", () => {
    const state = after([150, parked], [180, charged(50)], [220, unparked]);
    expect(chargeAt(state, 300, parkedSpans(state, 300))).toBe(50 + 80);
  });

  test("before a sample is forgotten with it", () => {
    expect(after([110, parked], [120, unparked], [200, charged(90)]).parked).toEqual([]);
  });
});

describe("a checkpoint of an episode", () => {
  const state = after([110, bookmarked({ stage: "seed" })], [120, bookmarked({ stage: "invoke_agent", terms })]);

  test("holds it without the times at which it was parked", () => {
    const busy = evolved(state, [130, parked], [140, unparked], [150, charged(40)], [160, parked]);
    expect(episodeKind.fix(busy)).toEqual({ ...busy, parkedSinceMs: null, parked: [] });
    expect(busy.parkedSinceMs).toBe(160);
  });

  test("is told by what events say, and by no clock", () => {
    const summaries = [0, 1_000].map((laterMs) =>
      episodeKind.summary(episodeKind.fix(evolved(state, [150 + laterMs, charged(40)], [160 + laterMs, parked]))),
    );
    expect(summaries[0]).toEqual(["s-r", "a".repeat(64), "invoke_agent", terms, null, null, 40, 3]);
    expect(summaries[1]).toEqual(summaries[0]);
  });

  test("differs with whatever an event can change", () => {
    const others = [
      state,
      evolved(state, [130, charged(41)]),
      evolved(state, [130, bookmarked({ stage: "close_agent", output: content("b") })]),
      evolved(state, [130, bookmarked({ stage: "close_agent", output: content("d") })]),
      evolved(state, [130, bookmarked({ stage: "return", verdict: content("b") })]),
      evolved(state, [130, bookmarked({ stage: "invoke_agent", terms: { ...terms, rebinds: false } })]),
    ].map((other) => JSON.stringify(episodeKind.summary(other)));
    expect(new Set(others).size).toBe(others.length);
  });

  test("names no calls: the environment makes none", () => {
    expect(episodeKind.edges(state)).toEqual({});
  });
});

describe("[S2] a replacement attempt", () => {
  const fixed = episodeKind.fix(
    after(
      [110, bookmarked({ stage: "seed" })],
      [120, bookmarked({ stage: "invoke_agent", terms })],
      [150, charged(50)],
    ),
  );

  test("goes on from the bookmark with the charge so far, from when it is dispatched, at the servers that it names", () => {
    const claimed = evolved(fixed, [
      9_000,
      opened({ agent: "other", resources: "third", budgetMs: 1, policyVersion: 9 }),
    ]);
    expect(claimed).toEqual({
      ...fixed,
      isReplacement: true,
      sinceMs: 9_000,
      agent: "other",
      resources: "third",
    });
    expect(chargeAt(claimed, 9_010, parkedSpans(claimed, 9_010))).toBe(60);
  });

  test("seeds its servers again, until its next bookmark says that it has", () => {
    const claimed = evolved(fixed, [9_000, opened()]);
    expect(nextStep(claimed)).toEqual({ stage: "invoke_agent", mode: "replay", reseeds: true });
    const next = evolved(claimed, [9_100, bookmarked({ stage: "close_agent", output: content("b") })]);
    expect(nextStep(next)).toEqual({ stage: "close_agent", mode: "wait", reseeds: false });
  });

  test("forgets the spans that another attempt stood parked", () => {
    const claimed = evolved({ ...fixed, parked: [{ fromMs: 0, toMs: 1 }] }, [9_000, opened()]);
    expect(claimed.parked).toEqual([]);
  });
});
