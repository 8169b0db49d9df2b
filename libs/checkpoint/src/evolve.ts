/** The coordinator's fold: the state after each message of the stream, whoever wrote it. Total: it never throws. */
import { type Recorded, type StoredMessage } from "@holdpoint/eventsourcing";
import { controlSubject, type ControlEvent, type Writer } from "@holdpoint/schemas";
import { answerGiven, sessionCaptured } from "./answers.ts";
import { checkpointHandlers, leaseExpired } from "./checkpoints.ts";
import { commandEnded, commandHandlers, commandQueued } from "./commands.ts";
import { applied, type Handlers } from "./handlers.ts";
import { type Input, inputsOf, type LogEvent } from "./input.ts";
import { processHandlers, processSaid } from "./processes.ts";
import { episodeEnded, episodeOpened, rolloutHandlers } from "./rollouts.ts";
import type { CoordinatorState } from "./state.ts";
import { parseTraceparent } from "./traceparent.ts";

/** To be changed with every change of the state, or of what the fold makes of the same messages: it stamps snapshots (L14). */
export const foldVersion = 2;

/** The state after `message`, which is the next of the stream that the coordinator reads. */
export function advance(state: CoordinatorState, message: StoredMessage): CoordinatorState {
  const { sequence, subject } = message;
  if (subject.startsWith(`hp.${state.run}.log.`)) state.ends.set(subject, sequence);
  const controlSequence = subject === controlSubject(state.run) ? sequence : state.controlSequence;
  let next: CoordinatorState = { ...state, sequence, controlSequence };
  for (const input of inputsOf(message)) next = evolve(next, input, message);
  return next;
}

function evolve(
  state: CoordinatorState,
  input: Input,
  { sequence, timeMs, traceparent }: StoredMessage,
): CoordinatorState {
  switch (input.kind) {
    case "command":
      return commandQueued(state, {
        sequence,
        atMs: timeMs,
        sender: parseTraceparent(traceparent),
        name: input.name,
        read: input.read,
      });
    case "outcome":
      return commandEnded(state, input.command, input.outcome);
    case "control":
      return decided(state, input.recorded);
    case "log":
      return said(state, input.writer, input.recorded);
    case "unreadable": {
      const { subject, problem } = input;
      return { ...state, unreadable: [...state.unreadable, { sequence, subject, problem }] };
    }
  }
}

/** What only the coordinator itself is concerned with. */
const ownHandlers: Handlers<CoordinatorState> = {
  "coordinator.started": (state, { incarnation, promise }) => ({ ...state, leader: incarnation, promise }),
  "coordinator.stopped": (state, { incarnation }) =>
    state.leader === incarnation ? { ...state, leader: undefined } : state,
  "input.refused": (state, { sequence }) => ({
    ...state,
    unreadable: state.unreadable.filter((other) => other.sequence !== sequence),
  }),
};

/** Each table keeps its own part of the state. The commands' comes first: a command keeps of a checkpoint what its end drops. */
const tables = [ownHandlers, processHandlers, commandHandlers, checkpointHandlers, rolloutHandlers];

function decided(state: CoordinatorState, recorded: Recorded<ControlEvent>): CoordinatorState {
  let next = state;
  for (const table of tables) next = applied(table, next, recorded.event, recorded);
  return next;
}

function said(state: CoordinatorState, writer: Writer, recorded: Recorded<LogEvent>): CoordinatorState {
  const { event, sequence } = recorded;
  if (event.type === "episode.opened") return episodeOpened(state, event.data);
  if (event.type === "episode.ended") return episodeEnded(state, event.data);
  if (event.type === "participant.answered") return answerGiven(state, writer, event.data, sequence);
  if (event.type === "lease.expired") return leaseExpired(state, event.data.checkpointId);
  if (event.type === "session.captured") return sessionCaptured(state, writer, event.data);
  const { role, instance, worker } = writer;
  return role === "trainer" ? state : processSaid(state, { role, instance, worker }, recorded);
}
