/**
 * The sessions of one process, as its log and the control subject tell them.
 *
 * Owns: which sessions there are, what each holds, what each checkpoint fixed of them, which restores are pending.
 * Does not own: what a session's state is (the role's `SessionKind` does), nor what the process may do (the gate does).
 *
 * 1. Only events in stream order are applied: the same fold rebuilds a process after a crash, and a checkpoint at its cut.
 * 2. A session's state is an immutable value, so that fixing it at a cut costs a reference.
 * 3. `attempt` of a restored session is new; what it goes on from is the value that its source fixed (L6, L7).
 */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { ControlEvent, Edges, Episode } from "@holdpoint/schemas";
import {
  type Capture,
  captureOf,
  fields,
  isSame,
  sessionData,
  type SessionData,
  type SessionEvent,
} from "./session-data.ts";
import { initialStatus, moved, type SessionStatus } from "./machine.ts";
import { RolloutIndex } from "./rollout-index.ts";

/** How a role's sessions come to be, change and are named in a checkpoint. All functions are pure and total. */
export interface SessionKind<State, E extends SessionEvent> {
  /** The state of a session that `event` opens; undefined where an event of this type opens none. */
  readonly open: (event: E, recorded: Recorded<E>) => State | undefined;
  readonly evolve: (state: State, event: E, recorded: Recorded<E>) => State;
  /** What of the state a checkpoint holds, such as a ledger less its undelivered calls. */
  readonly fix: (state: State) => State;
  /** JSON that says the state, small whatever its history: what a digest is made of. */
  readonly summary: (state: State) => unknown;
  readonly edges: (state: State) => Edges;
}

export interface Session<State> extends Episode {
  readonly status: SessionStatus;
  readonly state: State;
  /** Where its history left an earlier attempt; its replacement has not claimed it while `claimed` is false. */
  readonly from: { readonly attempt: number; readonly source: string } | undefined;
  readonly claimed: boolean;
  /** Sequence of its latest event. */
  readonly sequence: number;
}

/** The events after which a session is no more. */
const ends: ReadonlySet<string> = new Set(["session.closed", "session.retired", "episode.ended"]);

type Sessions<State> = Map<string, Session<State>>;

type ReadonlySessions<State> = ReadonlyMap<string, Session<State>>;

/** The sessions of a fold, by where they stand. */
export interface SavedSessions<State> {
  readonly live: ReadonlySessions<State>;
  readonly fixed: ReadonlyMap<string, ReadonlySessions<State>>;
  readonly pending: ReadonlyMap<string, ReadonlySessions<State>>;
  readonly ended: ReadonlyMap<string, number>;
}

export function keyOf({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}

export class SessionFold<State, E extends SessionEvent> {
  readonly kind: SessionKind<State, E>;
  readonly #live: Sessions<State> = new Map();
  /** Of the live ones. */
  readonly #rollouts = new RolloutIndex();
  readonly #fixed = new Map<string, Sessions<State>>();
  readonly #pending = new Map<string, Sessions<State>>();
  /** By which ask and which incarnation each checkpoint was fixed: another one begins anew. */
  readonly #captures = new Map<string, Capture>();

  /** What other workers of the instance held, by the restore that is under way and the worker. */
  readonly #foreign = new Map<string, Map<string, SessionFold<State, E>>>();
  /** The highest attempt of each rollout that has ended here. */
  readonly #ended = new Map<string, number>();

  constructor(kind: SessionKind<State, E>) {
    this.kind = kind;
  }

  get(episode: Episode): Session<State> | undefined {
    return this.#live.get(keyOf(episode));
  }

  /** Every live session: neither closed nor retired. */
  all(): readonly Session<State>[] {
    return [...this.#live.values()];
  }

  /** Every live session, one after the other. */
  live(): Iterable<Session<State>> {
    return this.#live.values();
  }

  /** The live sessions of a rollout: as many as it has attempts that are neither closed nor retired. */
  of(rollout: string): readonly Session<State>[] {
    const keys = this.#rollouts.of(rollout).map((attempt) => keyOf({ rollout, attempt }));
    return keys.map((key) => this.#live.get(key)).filter((session) => session !== undefined);
  }

  /** What the checkpoint fixed; undefined where this process knows no such checkpoint. */
  fixedBy(checkpointId: string): readonly Session<State>[] | undefined {
    const fixed = this.#fixed.get(checkpointId);
    return fixed === undefined ? undefined : [...fixed.values()];
  }

  /** The sessions of a restore that is not installed yet. */
  pendingOf(restoreId: string): readonly Session<State>[] {
    return [...(this.#pending.get(restoreId)?.values() ?? [])];
  }

  /** Every session that may still be asked for: live, fixed by a checkpoint, or of a restore that is not installed yet. */
  held(): readonly Session<State>[] {
    const groups = [this.#live, ...this.#fixed.values(), ...this.#pending.values()];
    return groups.flatMap((sessions) => [...sessions.values()]);
  }

  /** Whether the episode has ended here, or a later one of its rollout: it is never opened again. */
  hasEnded({ rollout, attempt }: Episode): boolean {
    return attempt <= (this.#ended.get(rollout) ?? -1);
  }

  /** What the checkpoint fixed of one session. */
  fixedIn(checkpointId: string, episode: Episode): Session<State> | undefined {
    return this.#fixed.get(checkpointId)?.get(keyOf(episode));
  }

  /** In the restore named, sessions that `worker` held are found in `fold`, which has folded its log up to the cut. */
  adopt(restoreId: string, worker: string, fold: SessionFold<State, E>): void {
    const folds = this.#foreign.get(restoreId) ?? new Map();
    this.#foreign.set(restoreId, folds.set(worker, fold));
  }

  /** Everything it holds, as plain values: what a snapshot of the fold is made of. */
  save(): SavedSessions<State> {
    return { live: this.#live, fixed: this.#fixed, pending: this.#pending, ended: this.#ended };
  }

  /** Takes over what `save` gave; for a fold that has applied nothing. */
  load({ live, fixed, pending, ended }: SavedSessions<State>): void {
    for (const [rollout, attempt] of ended) this.#ended.set(rollout, attempt);
    for (const [, session] of live) this.#begins(session);
    for (const [id, sessions] of fixed) {
      this.#fixed.set(id, new Map(sessions));
      this.#captures.set(id, { asked: undefined, incarnation: "" }); // of a process that is over
    }
    for (const [id, sessions] of pending) this.#pending.set(id, new Map(sessions));
  }

  /** Applies an event of the process's own log or result subject. */
  apply(recorded: Recorded<E>): void {
    const { type } = recorded.event;
    if (type === "participant.answered") return this.#answered(recorded);
    const data = sessionData(recorded.event.data);
    if (data === undefined) return;
    if (type === "session.captured") this.#fix(data, recorded);
    else if (type === "session.restored") this.#restore(data, recorded.sequence);
    else this.#evolve(data, recorded);
  }

  /** Applies an event of the control subject. */
  applyControl({ event }: Recorded<ControlEvent>): void {
    switch (event.type) {
      case "participants.asked":
        return this.#begin(event.data);
      case "restore.installed":
        return this.#install(event.data.checkpointId);
      case "restore.failed":
        return this.#restored(event.data.checkpointId);
      case "rollouts.forgotten":
        for (const rollout of event.data.rollouts) this.#ended.delete(rollout);
        return;
      case "checkpoint.releasing":
        return this.#release(event.data.kept);
      default:
    }
  }

  /** A capture begins anew with each ask. What is restored counts for a restore that was asked for and is not over. */
  #begin({ operation, checkpointId }: { readonly operation: string; readonly checkpointId: string | null }): void {
    if (checkpointId === null) return;
    if (operation === "capture") {
      this.#fixed.set(checkpointId, new Map());
      this.#captures.delete(checkpointId);
    }
    if (operation === "restore") this.#pending.set(checkpointId, new Map());
  }

  #evolve(episode: Episode, recorded: Recorded<E>): void {
    const key = keyOf(episode);
    const sessions = this.#holding(key);
    const known = sessions.get(key);
    if (ends.has(recorded.event.type)) this.#end(episode, sessions);
    else if (known !== undefined) sessions.set(key, this.#next(known, recorded));
    else this.#open(episode, recorded);
  }

  #end({ rollout, attempt }: Episode, sessions: Sessions<State>): void {
    sessions.delete(keyOf({ rollout, attempt }));
    if (sessions === this.#live) this.#rollouts.remove({ rollout, attempt });
    this.#ended.set(rollout, Math.max(attempt, this.#ended.get(rollout) ?? -1));
  }

  #open(episode: Episode, recorded: Recorded<E>): void {
    const state = this.kind.open(recorded.event, recorded);
    if (state === undefined) return;
    const { sequence } = recorded;
    const status = moved(initialStatus, recorded.event.type);
    this.#begins({ ...episode, status, state, sequence, from: undefined, claimed: true });
  }

  /** A session lives from here. */
  #begins(session: Session<State>): void {
    this.#live.set(keyOf(session), session);
    this.#rollouts.add(session);
  }

  #next(session: Session<State>, recorded: Recorded<E>): Session<State> {
    const { event, sequence } = recorded;
    return {
      ...session,
      sequence,
      status: moved(session.status, event.type),
      state: this.kind.evolve(session.state, event, recorded),
      claimed: session.claimed || this.kind.open(event, recorded) !== undefined,
    };
  }

  /** The sessions among which `key` is: those of a pending restore, else the live ones. */
  #holding(key: string): Sessions<State> {
    for (const sessions of this.#pending.values()) if (sessions.has(key)) return sessions;
    return this.#live;
  }

  #fix({ checkpointId, ...data }: SessionData, recorded: Recorded<E>): void {
    const session = this.#live.get(keyOf(data));
    if (checkpointId === undefined || session === undefined) return;
    this.#capturing(checkpointId, captureOf(recorded)).set(keyOf(data), {
      ...session,
      state: this.kind.fix(session.state),
    });
  }

  /** What a capture has fixed is what was fixed by the process, and for the ask, that answer it. */
  #answered(recorded: Recorded<E>): void {
    const { operation, checkpointId, problem } = fields(recorded.event.data);
    if (operation !== "capture" || typeof checkpointId !== "string" || problem !== undefined) return;
    this.#capturing(checkpointId, captureOf(recorded));
  }

  /** The sessions that `capture` has fixed so far. */
  #capturing(checkpointId: string, capture: Capture): Sessions<State> {
    const known = this.#fixed.get(checkpointId);
    const before = this.#captures.get(checkpointId);
    this.#captures.set(checkpointId, capture);
    if (known !== undefined && (before === undefined || isSame(before, capture))) return known;
    const fixed: Sessions<State> = new Map();
    this.#fixed.set(checkpointId, fixed);
    return fixed;
  }

  #restore({ rollout, attempt, from, source, checkpointId, worker }: SessionData, sequence: number): void {
    if (from === undefined || source === undefined || checkpointId === undefined) return;
    const holder = worker === undefined ? this : this.#foreign.get(checkpointId)?.get(worker);
    const origin = holder?.fixedIn(source, { rollout, attempt: from });
    if (origin === undefined) return;
    const status = moved(origin.status, "session.unparked");
    const restored = { ...origin, attempt, status, sequence, claimed: false, from: { attempt: from, source } };
    this.#pending.get(checkpointId)?.set(keyOf({ rollout, attempt }), restored);
  }

  #install(restoreId: string): void {
    for (const session of this.#pending.get(restoreId)?.values() ?? []) this.#begins(session);
    this.#restored(restoreId);
  }

  /** The restore is over. */
  #restored(restoreId: string): void {
    this.#pending.delete(restoreId);
    this.#foreign.delete(restoreId);
  }

  /** No checkpoint is open at a release: what is not kept was dropped, or was captured and never committed. */
  #release(kept: readonly string[]): void {
    const keeps = new Set(kept);
    for (const checkpointId of this.#fixed.keys()) {
      if (keeps.has(checkpointId)) continue;
      this.#fixed.delete(checkpointId);
      this.#captures.delete(checkpointId);
    }
  }
}
