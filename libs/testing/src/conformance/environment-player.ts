/** The trainer, the agent and the resources server of an environment. */
import { decodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { type Edges, type Episode, logEvents, resultSubject, seedSubject } from "@holdpoint/schemas";
import { setTimeout as pause } from "node:timers/promises";
import { contentOf, playServer } from "./played-servers.ts";
import type { MalformedRequest, Player } from "./player.ts";
import type { Answered, ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

const terms = { verify: "replay", rebinds: true, sandboxLent: false, grantsBound: false } as const;
const environmentEvents = eventSchema(logEvents.environment);

/** How long a played activation lets itself be waited for, in milliseconds: short, so that it is asked for often. */
const pollMs = 50;

export class EnvironmentPlayer implements Player {
  readonly whileClosed = "admission_closed";
  readonly #rig: ConformanceRig;
  /** How often the activation of each episode was asked for. */
  readonly #asked = new Map<string, number>();
  readonly #ended = new Set<string>();
  readonly #stops: (() => void)[] = [];

  private constructor(rig: ConformanceRig) {
    this.#rig = rig;
  }

  static async start(rig: ConformanceRig): Promise<EnvironmentPlayer> {
    const player = new EnvironmentPlayer(rig);
    const { run, connectAs } = rig.options;
    for (const role of ["agent", "resources"] as const) {
      const stop = await playServer(await connectAs(role), { run, role }, (episode, method) =>
        player.#play(episode, method),
      );
      player.#stops.push(stop);
    }
    return player;
  }

  get malformed(): readonly MalformedRequest[] {
    const { run, target } = this.#rig.options;
    const subject = seedSubject(run, "environment", "main");
    const code = "rollout_id_required";
    return [
      { what: "a body that is no object", code, send: () => this.#rig.ask(subject, "[]") },
      {
        what: "a dispatch without a rollout",
        code,
        send: () => this.#rig.ask(subject, { task: target.workload.seed }),
      },
    ];
  }

  /** Up to its activation. */
  async begin(episode: Episode): Promise<void> {
    const answer = await this.#rig.admitted(() => this.fresh(episode));
    must(answer.ok, `a dispatch was refused: ${JSON.stringify(answer)}`);
    await this.#works(episode);
  }

  /** It asks again and again for the same activation: there is nothing else to see until that ends. */
  async advance(episode: Episode): Promise<string> {
    await this.#works(episode);
    return "";
  }

  async recall(episode: Episode): Promise<readonly string[]> {
    await this.#works(episode);
    return [];
  }

  claim(_from: Episode, to: Episode): Promise<void> {
    return this.begin(to);
  }

  fresh(episode: Episode): Promise<Answered> {
    const { run, target } = this.#rig.options;
    const { seed: task = {} } = target.workload;
    const servers = { agent: "main", resources: "main" };
    const body = { ...episode, task, ...servers, budgetMs: null, policyVersion: 0 };
    return this.#rig.ask(seedSubject(run, "environment", "main"), body);
  }

  probe(episode: Episode): Promise<Answered> {
    return this.fresh(episode);
  }

  edgesOf(): Edges {
    return {};
  }

  async finish(episode: Episode): Promise<number> {
    this.#ended.add(keyOf(episode));
    await this.#rig.patience.until(`a result of ${keyOf(episode)}`, async () =>
      (await this.#results(episode)) > 0 ? true : undefined,
    );
    return this.#results(episode);
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
  }

  async #works(episode: Episode): Promise<void> {
    const key = keyOf(episode);
    const before = this.#asked.get(key) ?? 0;
    await this.#rig.patience.until(`it asks for the activation of ${key}`, () =>
      (this.#asked.get(key) ?? 0) > before ? true : undefined,
    );
  }

  async #play(episode: Episode, method: string): Promise<object> {
    if (method === "seed") return { terms, restart: null };
    if (method === "verify") return { verdict: contentOf(JSON.stringify({ reward: 1 })) };
    if (method !== "activate") return {};
    const key = keyOf(episode);
    this.#asked.set(key, (this.#asked.get(key) ?? 0) + 1);
    if (!this.#ended.has(key)) await pause(pollMs);
    return this.#ended.has(key) ? { status: "ended", output: contentOf("done") } : { status: "running" };
  }

  /** How many results of the episode say that it has finished, with the reward of the verdict. */
  async #results({ rollout, attempt }: Episode): Promise<number> {
    const { log, run } = this.#rig.options;
    const subjects = [resultSubject(run, { role: "environment", instance: "main", worker: "0" })];
    let count = 0;
    await log.read({ upTo: await log.lastSequence(), subjects }, (message) => {
      for (const { event } of decodeEvents(message, environmentEvents).events) {
        if (event.type !== "episode.ended" || keyOf(event.data) !== keyOf({ rollout, attempt })) continue;
        if (event.data.status === "finished" && event.data.reward === 1) count += 1;
      }
    });
    return count;
  }
}

function keyOf({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}
