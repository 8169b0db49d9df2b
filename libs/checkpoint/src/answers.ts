/** The fold of what participants answer, and of the sessions that they capture. */
import type { ParticipantEvent, Writer } from "@holdpoint/schemas";
import { distinct } from "./orders.ts";
import { processKey } from "./processes.ts";
import type { Answer, CapturedSession, CoordinatorState } from "./state.ts";

type DataOfAnswer = Extract<ParticipantEvent, { type: "participant.answered" }>["data"];
type DataOfCapture = Extract<ParticipantEvent, { type: "session.captured" }>["data"];

/**
 * An answer to an ask of a command under way; all others are late, and change nothing but what restarts: that is fixed from when
 * admission closes, whoever still waits for it. The last answer counts.
 */
export function answerGiven(
  before: CoordinatorState,
  writer: Writer,
  data: DataOfAnswer,
  sequence: number,
): CoordinatorState {
  const state = restartsTold(before, data);
  const command = state.askers.get(data.asked);
  const op = command === undefined ? undefined : state.ops.get(command);
  const ask = op?.asks.find((other) => other.sequence === data.asked);
  if (ask === undefined || ask.operation !== data.operation) return state;
  const key = processKey(writer);
  ask.answers.set(key, answer(data, sequence, capturedBy(state, key, data)));
  return state;
}

function restartsTold(
  state: CoordinatorState,
  { operation, checkpointId, restarts = [] }: DataOfAnswer,
): CoordinatorState {
  const { open } = state;
  if (restarts.length === 0 || operation !== "prepare" || open?.checkpointId !== checkpointId) return state;
  return { ...state, open: { ...open, restarts: distinct([...open.restarts, ...restarts]) } };
}

function answer(data: DataOfAnswer, sequence: number, captured: readonly CapturedSession[]): Answer {
  const {
    problem,
    blockers = [],
    restarts = [],
    continued = [],
    digest,
    sessions = 0,
    installed = [],
    adopted = [],
  } = data;
  const blockerCount = Math.max(data.blockerCount ?? 0, blockers.length);
  return {
    sequence,
    problem,
    blockers,
    blockerCount,
    restarts,
    continued,
    digest,
    sessions,
    installed,
    adopted,
    captured,
  };
}

/** The sessions that the answer counts: the last ones captured before it. Earlier ones belong to an ask that was superseded. */
function capturedBy({ captures }: CoordinatorState, key: string, { operation, sessions = 0 }: DataOfAnswer) {
  if (operation !== "capture" || sessions === 0) return [];
  return captures.get(key)?.slice(-sessions) ?? [];
}

export function sessionCaptured(state: CoordinatorState, writer: Writer, data: DataOfCapture): CoordinatorState {
  const { rollout, attempt, checkpointId, digest, edges } = data;
  if (state.open?.checkpointId !== checkpointId) return state;
  const key = processKey(writer);
  const known = state.captures.get(key);
  const session: CapturedSession = { rollout, attempt, digest, edges };
  if (known === undefined) state.captures.set(key, [session]);
  else known.push(session);
  return state;
}
