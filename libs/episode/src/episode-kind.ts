/**
 * An episode as the environment's log tells it: where it stands, what was said when it was seeded, what it has used up.
 *
 * A checkpoint holds this value; a replacement attempt goes on from it. What a restore does at each bookmark is `nextStep`.
 */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { Content, EnvironmentEvent, ParticipantEvent, SeedTerms, Stage } from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";
import type { Charge, Span } from "./budget.ts";

export interface EpisodeState extends Charge {
  readonly sessionId: string;
  readonly task: Content;
  readonly agent: string;
  readonly resources: string;
  readonly policyVersion: number;
  /** The latest bookmark; `none` before the first. */
  readonly stage: Stage | "none";
  readonly terms: SeedTerms | null;
  readonly output: Content | null;
  readonly verdict: Content | null;
  /** Restored, and its servers have not been seeded again: cleared by the next bookmark. */
  readonly isReplacement: boolean;
  /** Since when it is parked for a checkpoint. */
  readonly parkedSinceMs: number | null;
  /** Spans that it was parked since it was last charged. */
  readonly parked: readonly Span[];
}

type Event = EnvironmentEvent | ParticipantEvent;

/** Episodes as sessions of the environment. */
export const episodeKind: SessionKind<EpisodeState, Event> = {
  open: (event, recorded) => (event.type === "episode.opened" ? opened(event.data, recorded) : undefined),
  evolve,
  fix: (state) => ({ ...state, parkedSinceMs: null, parked: [] }),
  // Nothing of time but what an event says: a replay comes to the same.
  summary: ({ sessionId, task, stage, terms, output, verdict, chargedMs, policyVersion }) => [
    sessionId,
    task.digest,
    stage,
    terms,
    output?.digest ?? null,
    verdict?.digest ?? null,
    chargedMs,
    policyVersion,
  ],
  edges: () => ({}),
};

type Opened = Extract<EnvironmentEvent, { type: "episode.opened" }>["data"];

function opened(data: Opened, { timeMs }: Recorded<Event>): EpisodeState {
  const { sessionId, task, agent, resources, budgetMs, policyVersion } = data;
  return {
    sessionId,
    task,
    agent,
    resources,
    budgetMs,
    policyVersion,
    stage: "none",
    terms: null,
    output: null,
    verdict: null,
    chargedMs: 0,
    sinceMs: timeMs,
    isReplacement: false,
    parkedSinceMs: null,
    parked: [],
  };
}

function evolve(state: EpisodeState, event: Event, { timeMs }: Recorded<Event>): EpisodeState {
  switch (event.type) {
    case "episode.opened": // the replacement attempt claims what was restored
      return {
        ...state,
        isReplacement: true,
        sinceMs: timeMs,
        parked: [],
        agent: event.data.agent,
        resources: event.data.resources,
      };
    case "episode.bookmarked":
      return bookmarked(state, event.data);
    case "episode.charged":
      return { ...state, chargedMs: event.data.chargedMs, sinceMs: timeMs, parked: [] };
    case "session.parked":
      return { ...state, parkedSinceMs: timeMs };
    case "session.unparked":
      return unparked(state, timeMs);
    default:
      return state;
  }
}

function bookmarked(
  state: EpisodeState,
  { stage, terms, output, verdict }: Extract<EnvironmentEvent, { type: "episode.bookmarked" }>["data"],
): EpisodeState {
  return {
    ...state,
    stage,
    isReplacement: false,
    terms: terms ?? state.terms,
    output: output ?? state.output,
    verdict: verdict ?? state.verdict,
  };
}

/** A parked span ends; those before the last sample are charged for, or not, already. */
function unparked(state: EpisodeState, timeMs: number): EpisodeState {
  if (state.parkedSinceMs === null) return state;
  return { ...state, parkedSinceMs: null, parked: [...state.parked, { fromMs: state.parkedSinceMs, toMs: timeMs }] };
}

/** Until `nowMs`, the spans in which the environment itself held the episode parked, since it was last charged. */
export function parkedSpans({ parked, parkedSinceMs }: EpisodeState, nowMs: number): readonly Span[] {
  return parkedSinceMs === null ? parked : [...parked, { fromMs: parkedSinceMs, toMs: nowMs }];
}
