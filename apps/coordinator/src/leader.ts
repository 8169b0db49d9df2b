/**
 * One term of a coordinator that leads: react, append, fold. It decides nothing itself.
 *
 *  1. One append at a time, and the next decision only once everything appended is folded in.
 *  2. It leads from the acknowledgement of `coordinator.started`, which fences the one before (L1), until somebody else's stands
 *     in the log: then the term is over, and nothing more is appended in it (L11).
 *  3. Time is the stream's. A timer only asks the decisions again; what is over is over by an event (L10).
 */
import { anchorOf, type CoordinatorState, type Decision, draftsOf, isLeader, react } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import { encodeEvents, type EventLog } from "@holdpoint/eventsourcing";
import { controlSubject, type ControlEvent, type StreamPromise } from "@holdpoint/schemas";
import type { Follower } from "./follower.ts";

export interface LeaderOptions {
  readonly run: string;
  readonly log: EventLog;
  /** What the server promises about the stream. */
  readonly promise: StreamPromise;
  /** How long what is open outlives the deadline of its latest command, in milliseconds. */
  readonly leaseGraceMs: number;
  /** Lower-case hexadecimal SHA-256 of a text. */
  readonly hash: (text: string) => string;
  /** Told of every decision that is in the log. */
  readonly decided?: (state: CoordinatorState, decision: Extract<Decision, { kind: "append" }>) => void;
}

/** How a term ended: told to stop, or another coordinator has taken over. */
export type TermEnd = "stopped" | "superseded";

export class Leader {
  readonly #options: LeaderOptions;
  readonly #follower: Follower;
  /** Unique for each term. */
  readonly #incarnation: string;
  /** What was read since the last append: a later decision reads for itself. */
  readonly #anchors = new Map<number, string | undefined>();
  #appends = 0;

  constructor(options: LeaderOptions, follower: Follower, incarnation: string) {
    this.#options = options;
    this.#follower = follower;
    this.#incarnation = incarnation;
  }

  /**
   * Appends that it leads, where `control` still ends at `sequence`: then nobody has led, or begun to, since it was found that
   * nobody does.
   *
   * @returns whether it leads
   */
  async takeOver(sequence: number): Promise<boolean> {
    const { promise } = this.#options;
    const data = { incarnation: this.#incarnation, promise };
    return this.#say({ type: "coordinator.started", data }, sequence);
  }

  /**
   * Leads until `stopping` is aborted, after the append that is on its way, or until it is superseded.
   *
   * @throws HoldpointError whatever the log throws
   */
  async lead(stopping: AbortSignal): Promise<TermEnd> {
    while (!stopping.aborted) {
      if (!isLeader(this.#follower.state, this.#incarnation)) return "superseded";
      const decision = this.#decide();
      if (decision.kind === "wait") await this.#wait(decision.untilMs);
      else if (decision.kind === "read") await this.#read(decision.sequence);
      else if ((await this.#append(decision)) === "superseded") return "superseded";
    }
    return (await this.#stop()) ? "stopped" : "superseded";
  }

  /** Says that it leads no more, so that whoever stands by need not find out. @returns whether it has led until now */
  async #stop(): Promise<boolean> {
    if (!isLeader(this.#follower.state, this.#incarnation)) return false;
    const data = { incarnation: this.#incarnation };
    return this.#say({ type: "coordinator.stopped", data }, this.#follower.state.controlSequence);
  }

  async #say(event: ControlEvent, sequence: number): Promise<boolean> {
    const { run, log } = this.#options;
    const subject = controlSubject(run);
    const expected = { subject, sequence };
    const messageId = `${this.#incarnation}.${event.type}`;
    const draft = { subject, messageId, expected, ...encodeEvents(this.#incarnation, [event]) };
    const done = await log.append(draft, this.#follower.halted);
    if (done.stored) await this.#follower.caughtUp(done.sequence);
    return done.stored;
  }

  #decide(): Decision {
    const { leaseGraceMs } = this.#options;
    const { state, nowMs } = this.#follower;
    return react({ state, nowMs, leaseGraceMs, anchors: this.#anchors });
  }

  /** Nothing is due: the time to save what was folded. */
  async #wait(untilMs: number): Promise<void> {
    this.#follower.saveIfDue();
    await this.#follower.changed(untilMs);
  }

  async #append(decision: Extract<Decision, { kind: "append" }>): Promise<"appended" | "refused" | "superseded"> {
    const { log, decided } = this.#options;
    const before = this.#follower.state;
    this.#appends += 1;
    const drafts = draftsOf(before, decision.messages, { incarnation: this.#incarnation, number: this.#appends });
    const [first] = drafts;
    const { halted } = this.#follower;
    const isOne = drafts.length === 1 && first !== undefined;
    const done = isOne ? await log.append(first, halted) : await log.appendBatch(drafts, halted);
    this.#anchors.clear();
    if (!done.stored) return this.#refused(before);
    await this.#follower.caughtUp(done.sequence);
    decided?.(this.#follower.state, decision);
    return "appended";
  }

  /** Another coordinator has written, or a process that was to be guarded or fenced has: then the fold knows more, and decides anew. */
  async #refused(before: CoordinatorState): Promise<"refused" | "superseded"> {
    const { log, run } = this.#options;
    const last = await log.lastOn(controlSubject(run));
    if ((last?.sequence ?? 0) !== before.controlSequence) return "superseded";
    await this.#follower.caughtUp(await log.lastSequence());
    if (this.#follower.state.sequence > before.sequence) return "refused";
    throw new HoldpointError("unavailable", "an append was refused, and nothing in the stream says why");
  }

  async #read(sequence: number): Promise<void> {
    const { log, hash } = this.#options;
    try {
      this.#anchors.set(sequence, anchorOf(await log.get(sequence), hash));
    } catch (error) {
      if (!HoldpointError.is(error, "not_found")) throw error;
      this.#anchors.set(sequence, undefined);
    }
  }
}
