/**
 * Episodes that have lost their agent or their resources server for good: nobody holds their session any more, so no checkpoint may
 * say that they go on. They are marked as restarts.
 *
 * 1. The directory knows which processes are expected, not which worker of several holds a session: where one is gone, those that
 *    are left are asked. A worker that does not answer may hold it: a prepare waits for that worker anyway, until it is gone as well.
 * 2. Until that is known, and the mark is in the log, a prepare waits.
 * 3. A process that is started again after all has its sessions from its log, and the work goes on: whoever asks for it waits (L9).
 */
import { HoldpointError } from "@holdpoint/errors";
import type { EpisodeState } from "@holdpoint/episode";
import { type Blocker, type Episode, HolderReply } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import type { Member } from "../directory.ts";
import type { Environment } from "./environment.ts";

/** Roles that hold a session of an episode. */
export type Served = "agent" | "resources";

/** Episodes that are asked about at once. */
const lanes = 16;
/** How long a worker is waited for that does not say whether it holds a session, in milliseconds. */
const answerMs = 30_000;

const held: Readonly<Record<EpisodeState["stage"], readonly Served[]>> = {
  none: [], // before it is seeded nobody holds anything of it: whoever comes will do
  seed: [],
  invoke_agent: ["agent", "resources"],
  close_agent: ["resources"], // the agent may have closed it already, and nobody misses it then
  verify: ["resources"],
  return: [],
};

/** Which server is gone as a whole. */
function lostBy({ directory }: Environment, { agent, resources, stage }: EpisodeState): string | undefined {
  if (stage === "none" || stage === "seed") return undefined;
  if (directory.find("agent", agent) === undefined) return `agent ${agent} is not expected any more`;
  if (directory.find("resources", resources) === undefined) return `resources ${resources} is not expected any more`;
  return undefined;
}

export class Orphans {
  readonly #participant: Environment;
  /** Episodes whose mark is on its way, by rollout. */
  readonly #marking = new Map<string, Episode>();
  /** Episodes whose servers are asked whether they hold it, by rollout. */
  readonly #asking = new Map<string, Episode>();
  #round = new AbortController();
  /** Who was expected when it looked last. */
  #expected: readonly Member[] = [];

  constructor(participant: Environment) {
    this.#participant = participant;
    participant.directory.onGone(() => this.#gone());
    participant.directory.onJoined(() => void (this.#expected = this.#members()));
  }

  /** What a prepare waits for. */
  blockers(): readonly Blocker[] {
    const sinceMs = this.#participant.clock.nowMs();
    const named = (episodes: Iterable<Episode>, reason: string) =>
      [...episodes].map(({ rollout, attempt }) => ({ rollout, attempt, reason, sinceMs }));
    return [
      ...named(this.#marking.values(), "its participant is gone"),
      ...named(this.#asking.values(), "a worker of its participant is gone, and may have held it"),
    ];
  }

  /** Looks at the episodes of instances that have lost a worker at any time: who looked before may not have come to its end. */
  look(): void {
    this.#expected = this.#members();
    this.#look((role, instance) => this.#participant.directory.hasLost(role, instance));
  }

  /** Whether nobody of `role` holds a session of the episode; then it is marked. */
  async isLost(episode: Episode, role: Served, signal: AbortSignal): Promise<boolean> {
    const session = this.#participant.sessions.get(episode);
    if (session === undefined || (await this.#isHeld(session, role, signal))) return false;
    await this.#mark(episode, whyLost(session, role));
    return true;
  }

  #members(): readonly Member[] {
    return (["agent", "resources"] as const).flatMap((role) => this.#participant.directory.of(role));
  }

  /** Looks at the episodes of the instances that have lost a worker. */
  #gone(): void {
    const members = this.#members();
    const gone = this.#expected.filter((one) => !members.some((other) => isSamePlace(one, other)));
    this.#expected = members;
    if (gone.length === 0) return;
    this.#look((role, instance) => gone.some((member) => member.role === role && member.instance === instance));
  }

  #look(concerns: (role: Served, instance: string) => boolean): void {
    const asked: Episode[] = [];
    for (const session of this.#participant.sessions.live()) {
      const { rollout, attempt, state, status } = session;
      if (status.restart || this.#marking.has(rollout)) continue;
      const why = lostBy(this.#participant, state);
      const isConcerned = held[state.stage].some((role) => concerns(role, state[role]));
      if (why !== undefined) void this.#mark(session, why);
      else if (isConcerned || this.#asking.has(rollout)) asked.push({ rollout, attempt });
    }
    this.#ask(asked);
  }

  /** Asks about these, and no longer about any other: who was asked before may be gone. */
  #ask(episodes: readonly Episode[]): void {
    this.#round.abort(new HoldpointError("unavailable", "asked anew"));
    this.#round = new AbortController();
    const { signal } = this.#round;
    this.#asking.clear();
    for (const episode of episodes) this.#asking.set(episode.rollout, episode);
    const remaining = episodes.values();
    const lane = async () => {
      for (const episode of remaining) await this.#examine(episode, signal);
    };
    for (let at = 0; at < Math.min(lanes, episodes.length); at++) void lane();
  }

  async #examine(episode: Episode, signal: AbortSignal): Promise<void> {
    try {
      // What a restore installs its participants hold once it is resumed.
      if (this.#participant.gate.closed?.kind === "restore") await this.#participant.admission.whenOpen(signal);
      for (const role of ["agent", "resources"] as const) await this.isLost(episode, role, signal);
    } catch (error) {
      if (signal.aborted) return;
      this.#participant.options.trouble(`who holds ${episode.rollout} is not known`, error);
    }
    this.#asking.delete(episode.rollout);
    this.#participant.changed();
  }

  /** Also true where the episode has come to where it needs `role` no more. */
  async #isHeld(session: Session<EpisodeState>, role: Served, signal: AbortSignal): Promise<boolean> {
    const { directory, sessions } = this.#participant;
    const instance = session.state[role];
    const workers = directory.of(role).filter((member) => member.instance === instance);
    const answers = await Promise.all(
      workers.map(({ worker }) => this.#holds(session, { role, instance, worker }, signal)),
    );
    const stage = sessions.get(session)?.state.stage;
    return answers.includes(true) || stage === undefined || !held[stage].includes(role);
  }

  /** Whether one worker holds the session. One that cannot say is believed to. */
  async #holds(
    { rollout, attempt }: Episode,
    { role, instance, worker }: { readonly role: Served; readonly instance: string; readonly worker: string },
    signal: AbortSignal,
  ): Promise<boolean> {
    const call = { episode: { rollout, attempt }, role, instance, method: "holder", body: { worker } };
    try {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
      return (await this.#participant.calls.call({ ...call, reply: HolderReply, signal: bounded })).holds;
    } catch (error) {
      signal.throwIfAborted();
      return !HoldpointError.is(error, "not_found");
    }
  }

  async #mark({ rollout, attempt }: Episode, why: string): Promise<void> {
    const isMarked = this.#participant.sessions.get({ rollout, attempt })?.status.restart !== false;
    if (isMarked || this.#marking.has(rollout)) return;
    this.#marking.set(rollout, { rollout, attempt });
    try {
      await this.#participant.record({ type: "session.restart_marked", data: { rollout, attempt, why } });
      this.#marking.delete(rollout);
      this.#participant.changed();
    } catch (error) {
      if (HoldpointError.is(error, "stale_attempt")) this.#marking.delete(rollout); // it was retired meanwhile
      else this.#participant.options.trouble(`${rollout} was not marked as a restart`, error); // and still blocks
    }
  }
}

function whyLost({ state }: Session<EpisodeState>, role: Served): string {
  return `no worker of ${role} ${state[role]} that is expected holds its session`;
}

function isSamePlace(one: Member, other: Member): boolean {
  return one.role === other.role && one.instance === other.instance && one.worker === other.worker;
}
