/** What the environment answers and obeys: dispatches of rollouts, and the control plane's asks. */
import { HoldpointError } from "@holdpoint/errors";
import type { EpisodeState } from "@holdpoint/episode";
import { type Episode, RunRequest } from "@holdpoint/schemas";
import { keyOf, type Session } from "@holdpoint/session";
import type { Logger } from "@holdpoint/telemetry";
import { sha256 } from "../hash.ts";
import { method } from "../rpc-server.ts";
import type { EnvironmentDefinition } from "./define-environment.ts";
import { Driver } from "./driver.ts";
import type { Environment } from "./environment.ts";
import { Meter } from "./meter.ts";
import { Orphans } from "./orphans.ts";

/** Characters of the longest session id. */
const longestToken = 128;

export class EnvironmentServer {
  readonly #definition: EnvironmentDefinition;
  readonly #participant: Environment;
  readonly #logger: Logger;
  readonly #meter: Meter;
  readonly #orphans: Orphans;
  readonly #drivers = new Map<string, Driver>();

  constructor(definition: EnvironmentDefinition, participant: Environment, logger: Logger) {
    this.#definition = definition;
    this.#participant = participant;
    this.#logger = logger;
    this.#meter = new Meter(participant);
    this.#orphans = new Orphans(participant);
  }

  /** Goes on with every episode that the log shows, and takes new ones. */
  async start(): Promise<void> {
    await this.#meter.recover();
    const run = method({
      body: RunRequest,
      whileClosed: this.#participant.spec.mode === "restart_only" ? "held" : "refused",
      seeds: true,
      handle: (episode, request) => this.#run(episode, request),
    });
    await this.#participant.serve({
      methods: { seed: run },
      hooks: {
        blockers: () => this.#orphans.blockers(),
        closed: () => this.#meter.closed(this.#closingAsk()),
        opened: () => this.#meter.opened(),
        capture: (sessions) => this.#meter.sample(sessions),
        retire: async (marks) => {
          await Promise.all(this.#drivenUpTo(marks).map((driver) => driver.cancel()));
          return [];
        },
      },
    });
    this.#orphans.look();
    if (this.#participant.admission.isClosed) this.#meter.closed(this.#closingAsk());
    for (const session of this.#participant.sessions.all()) if (session.claimed) this.#drive(session);
  }

  /** Answered once the episode is in the log. The same dispatch again changes nothing. */
  async #run(episode: Episode, request: RunRequest): Promise<object> {
    await this.#definition.bind(request.task);
    const known = this.#participant.sessions.get(episode);
    const task = await this.#participant.contents.write(JSON.stringify(request.task));
    if (known !== undefined && known.state.task.digest !== task.digest) throw otherTask(episode);
    if (known === undefined && this.#participant.sessions.hasEnded(episode)) return {};
    if (known?.claimed !== true) {
      this.#refuseBeside(episode);
      const { agent, resources, budgetMs, policyVersion } = request;
      const sessionId = known?.state.sessionId ?? sessionIdOf(episode);
      const data = { ...episode, sessionId, task, agent, resources, budgetMs, policyVersion };
      await this.#participant.record({ type: "episode.opened", data });
    }
    this.#drive(episode);
    return {};
  }

  /** One attempt of a rollout is live at a time, and a continuation that nobody has claimed is not passed over. */
  #refuseBeside({ rollout, attempt }: Episode): void {
    const other = this.#participant.sessions.of(rollout).find((session) => session.attempt !== attempt);
    if (other === undefined) return;
    const state = other.claimed ? "is still running" : "was restored and waits to be dispatched";
    throw new HoldpointError(
      "session_conflict",
      `attempt ${other.attempt} of ${rollout} ${state}: dispatch that attempt, or retire it first`,
      { details: { rollout, attempt: other.attempt } },
    );
  }

  #drive(episode: Episode | Session<EpisodeState>): void {
    const key = keyOf(episode);
    if (this.#drivers.has(key)) return;
    const options = {
      definition: this.#definition,
      participant: this.#participant,
      meter: this.#meter,
      orphans: this.#orphans,
      logger: this.#logger,
    };
    const driver = new Driver(options, episode);
    this.#drivers.set(key, driver);
    void driver.done.then(() => this.#drivers.delete(key));
  }

  #drivenUpTo(marks: readonly Episode[]): readonly Driver[] {
    const highest = new Map(marks.map(({ rollout, attempt }) => [rollout, attempt]));
    return this.#participant.sessions
      .all()
      .filter(({ rollout, attempt }) => attempt <= (highest.get(rollout) ?? -1))
      .flatMap((session) => this.#drivers.get(keyOf(session)) ?? []);
  }

  /** The sequence of the ask with which admission closed. */
  #closingAsk(): number {
    const { asks } = this.#participant.gate;
    return asks.find(({ ask }) => ask.operation === "prepare" || ask.operation === "restore")?.sequence ?? 0;
  }
}

/** Used again by every replacement attempt, so it is made of the rollout alone; of one that is too long, with its digest. */
function sessionIdOf({ rollout }: Episode): string {
  const whole = `s-${rollout}`;
  return whole.length <= longestToken ? whole : `h-${rollout.slice(0, 61)}-${sha256(rollout)}`;
}

function otherTask({ rollout, attempt }: Episode): HoldpointError {
  return new HoldpointError(
    "session_conflict",
    `${rollout} was opened with another task; dispatch it with the same one`,
    {
      details: { rollout, attempt },
    },
  );
}
