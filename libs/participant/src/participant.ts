/**
 * A participant's process: its log, its sessions, its admission, and its obedience to the control subject.
 *
 * 1. It obeys only the log: an ask on `control` is an obligation until its answer is in the process' own log, also for the
 *    process that comes after a crash (L2, L9).
 * 2. Its own events are applied when they are acknowledged, the control events through one queue behind them, so that what it
 *    holds is what a replay of the stream gives.
 * 3. Between its `captured` answer and the cut it appends nothing; after the cut the captured sessions wait (L4).
 */
import type { ParticipantGate } from "@holdpoint/checkpoint";
import { HoldpointError } from "@holdpoint/errors";
import type { Recorded, StoredMessage, Tail } from "@holdpoint/eventsourcing";
import type { Episode } from "@holdpoint/schemas";
import type { SessionEvent, SessionFold } from "@holdpoint/session";
import { Admission } from "./admission.ts";
import { Contents } from "./contents.ts";
import type { Directory } from "./directory.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { LogWriter } from "./log-writer.ts";
import { Membership } from "./membership.ts";
import { Obedience } from "./obedience.ts";
import { type OwnSubjects, ownSubjects, ProcessFold } from "./process-fold.ts";
import type { ParticipantOptions, Service } from "./participant-options.ts";
import type { LogEvent, RoleHooks, RoleSpec } from "./role-spec.ts";
import { Pace } from "./pace.ts";
import { recover } from "./recovering.ts";
import { endRefused } from "./refused-sessions.ts";
import { Refusals } from "./refusals.ts";
import { RpcClient } from "./rpc-client.ts";
import { RpcServer } from "./rpc-server.ts";
import { Siblings } from "./siblings.ts";
import type { StreamClock } from "./stream-clock.ts";

/** At some 250 bytes each they fit a message. */
const eventsPerMessage = 500;

export class Participant<State, Own extends SessionEvent> {
  readonly spec: RoleSpec<State, Own>;
  readonly options: ParticipantOptions;
  readonly contents: Contents;
  readonly admission: Admission;
  readonly calls: RpcClient;
  readonly subjects: OwnSubjects;
  readonly #pace: Pace<State, Own>;
  readonly #obedience: Obedience<State, Own>;
  readonly #fold: ProcessFold<State, Own>;
  readonly #refusals: Refusals;
  readonly #leaseWatch: LeaseWatch;
  readonly #membership: Membership;
  #hooks: RoleHooks<State, Own> = {};
  #writer: LogWriter<LogEvent<Own>> | undefined;
  #queue: Promise<void> = Promise.resolve();
  #tail: Tail | undefined;
  #server: RpcServer | undefined;
  #announced = 0;
  #stopped = false;

  private constructor(options: ParticipantOptions, spec: RoleSpec<State, Own>) {
    this.spec = spec;
    this.options = options;
    this.contents = new Contents(options.blobs);
    this.subjects = ownSubjects(options, spec.role);
    this.#fold = new ProcessFold(spec, this.subjects, options, (before, after) => this.#gateChanged(before, after));
    this.admission = new Admission(
      () => this.gate,
      () => this.clock.nowMs(),
    );
    this.calls = new RpcClient(options.messenger, options.run, this.directory);
    this.#pace = new Pace(this, (events) => this.#own.record(events));
    this.#obedience = new Obedience(this);
    this.#membership = new Membership(options, spec.role, this.directory);
    this.#leaseWatch = new LeaseWatch(
      () => this.clock.nowMs(),
      (checkpointId) => this.#expire(checkpointId),
    );
    this.#refusals = new Refusals(
      () => this.clock.nowMs(),
      (data) => {
        const recorded = this.#own.record([{ type: "input.refused", data }]);
        recorded.catch((error: unknown) => options.trouble("a refusal was not recorded", error));
      },
    );
  }

  /**
   * Takes over the process' log subject, which fences the incarnation before, and folds it to its end.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where the stream has lost part of it
   */
  static async open<State, Own extends SessionEvent>(
    options: ParticipantOptions,
    spec: RoleSpec<State, Own>,
  ): Promise<Participant<State, Own>> {
    const participant = new Participant(options, spec);
    await participant.#claim();
    await recover(options, spec, { fold: participant.#fold, upTo: participant.#announced });
    await participant.#holdAgain();
    return participant;
  }

  get gate(): ParticipantGate {
    return this.#fold.gate;
  }

  get sessions(): SessionFold<State, LogEvent<Own>> {
    return this.#fold.sessions;
  }

  get directory(): Directory {
    return this.#fold.directory;
  }

  get clock(): StreamClock {
    return this.#fold.clock;
  }

  /** When nobody worked, as this process itself knows: stream time, epoch milliseconds. */
  get outages(): readonly { readonly fromMs: number; readonly toMs: number }[] {
    return this.#fold.outages;
  }

  get hooks(): RoleHooks<State, Own> {
    return this.#hooks;
  }

  /** Ends what was retired before; obeys the control subject and answers requests from here on. */
  async serve({ methods, hooks }: Service<State, Own>): Promise<void> {
    this.#hooks = hooks;
    await endRefused(this);
    const { run, instance, worker, incarnation, messenger, log } = this.options;
    const tailed = { from: this.#announced + 1, subjects: [this.subjects.control] };
    this.#tail = await log.tail(tailed, (message) => this.#deliver(message));
    this.#tail.ended.catch((error: unknown) => this.#failed(error));
    const { role } = this.spec;
    const { directory } = this;
    this.#server = new RpcServer({
      messenger,
      run,
      role,
      instance,
      worker,
      siblings: new Siblings({ messenger, run, role, instance, worker, incarnation, directory }),
      admission: this.admission,
      holds: (episode) => this.sessions.get(episode) !== undefined,
      methods,
      refused: (subject, problem) => this.#refusals.note(subject, problem),
      trouble: this.options.trouble,
    });
    await this.#server.start();
    this.#obedience.look();
    this.#leaseWatch.start(this.gate);
  }

  /** Says goodbye: it is not expected any more. */
  async leave(): Promise<void> {
    this.#server?.stop();
    await this.#own.record([{ type: "participant.left", data: {} }], { urgent: true });
    await this.stop();
  }

  /** Stops without a goodbye: it stays expected, and its successor goes on. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#leaseWatch.stop();
    this.#server?.stop();
    await this.#tail?.stop();
  }

  /**
   * Appends events of sessions; returns once they are acknowledged and applied. What a captured session says waits until the
   * checkpoint lets it go on.
   *
   * @throws HoldpointError `stale_attempt` where an episode was retired, or a successor has taken over
   */
  record(...events: readonly LogEvent<Own>[]): Promise<void> {
    return this.#pace.going(events, () => this.#own.record(events));
  }

  /** Appends the event that ends an episode, to the result subject. */
  end(event: Own): Promise<void> {
    return this.#pace.going([event], () => this.#own.end(event));
  }

  /** Appends what obeys the control subject, captured or not, in as many messages as it needs; returns the last one's sequence. */
  async obey(events: readonly LogEvent<Own>[], options: { readonly urgent?: boolean } = {}): Promise<number> {
    const appended: Promise<number>[] = [];
    for (let from = 0; from < events.length; from += eventsPerMessage) {
      appended.push(this.#own.record(events.slice(from, from + eventsPerMessage), options));
    }
    return (await Promise.all(appended)).at(-1) ?? this.#own.sequence;
  }

  /** Returns once everything asked so far is appended; nothing but what is urgent follows until the gate lets it. */
  async freeze(): Promise<void> {
    await this.#own.freeze();
  }

  /**
   * A boundary of the session's work. Returns at once while admission is open; else the session parks here until it is let go
   * on. A restart never parks.
   *
   * @throws the signal's reason, when it is aborted meanwhile
   */
  boundary(episode: Episode, signal?: AbortSignal): Promise<void> {
    return this.#pace.boundary(episode, signal);
  }

  /** The broker was away and is back: says so, since nobody is charged for it. */
  async reconnected(lastAtMs: number): Promise<void> {
    await this.#own.record([{ type: "participant.reconnected", data: { lastAtMs } }]);
  }

  /** Tells whoever waits for readiness to look again. */
  changed(): void {
    this.admission.readiness.changed();
  }

  /** What these sessions say waits from here, until admission opens or the capture has failed. */
  hold(episodes: readonly Episode[]): void {
    this.#pace.hold(episodes);
  }

  /** The capture failed: the process goes on as before it. */
  letGo(): void {
    this.#pace.letGo();
    this.#own.thaw();
  }

  get #own(): LogWriter<LogEvent<Own>> {
    if (this.#writer === undefined) throw new HoldpointError("unavailable", "this participant has not been opened");
    return this.#writer;
  }

  #failed(error: unknown): void {
    if (!this.#stopped) this.options.failed?.(error);
  }

  async #claim(): Promise<void> {
    const { run, instance, worker, incarnation, log, endpoint } = this.options;
    const { mode, role } = this.spec;
    const { writer, sequence } = await LogWriter.claim<LogEvent<Own>>(
      {
        log,
        run,
        writer: { role, instance, worker },
        incarnation,
        now: () => this.clock.nowMs(),
        applied: (events) => this.#applyAll(events),
        fenced: () => this.#membership.fenced(),
        failed: (error) => this.#failed(error),
      },
      (last) => ({
        type: "participant.announced",
        data: { mode, endpoint: endpoint ?? null, lastAtMs: last?.timeMs ?? null },
      }),
    );
    this.#writer = writer;
    this.#announced = sequence;
  }

  /** What the process before this one had captured waits here as well. */
  async #holdAgain(): Promise<void> {
    const { fixed, cut } = this.gate;
    if (fixed !== undefined) await this.freeze();
    const held = fixed?.checkpointId ?? cut;
    if (held !== undefined) this.hold(this.sessions.fixedBy(held) ?? []);
  }

  #applyAll(events: readonly Recorded<LogEvent<Own>>[]): void {
    for (const recorded of events) this.#fold.apply(recorded);
    this.changed();
  }

  #deliver(message: StoredMessage): void {
    this.#queue = this.#queue.then(() => this.#obeyControl(message));
  }

  async #obeyControl(message: StoredMessage): Promise<void> {
    try {
      await this.#own.settled();
      this.#fold.applyControl(message);
      if (!this.#stopped) this.#membership.look();
      this.changed();
      this.#obedience.look();
    } catch (error) {
      this.options.trouble("a control event was not applied", error);
    }
  }

  /** Nobody has ended the hold in time: this process ends it for itself, and says so (L10). */
  async #expire(checkpointId: string): Promise<void> {
    try {
      await this.#own.record([{ type: "lease.expired", data: { checkpointId } }], { urgent: true });
      this.#obedience.look();
    } catch (error) {
      this.options.trouble(`the lease of ${checkpointId} ran out, and that was not recorded`, error, { checkpointId });
    }
  }

  /** What it waited for after a capture is decided: the cut stands, or the capture has failed. */
  #unfixed({ cut }: ParticipantGate): void {
    if (cut === undefined) this.letGo();
    else this.#own.thaw();
  }

  #gateChanged(before: ParticipantGate, next: ParticipantGate): void {
    if (before.fixed !== undefined && next.fixed === undefined) this.#unfixed(next);
    this.#leaseWatch.look(next);
    if (before.closed?.checkpointId === next.closed?.checkpointId) return;
    this.#pace.letGo();
    this.admission.open();
    if (next.closed === undefined) this.#hooks.opened?.();
    else {
      this.admission.close();
      this.#hooks.closed?.(next.closed.checkpointId);
    }
  }
}
