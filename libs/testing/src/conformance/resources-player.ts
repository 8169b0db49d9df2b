/** The agent and the environment of a resources server. */
import {
  type Edges,
  type Episode,
  type Json,
  type Role,
  rpcSubject,
  SeedReply,
  seedSubject,
  ToolReply,
} from "@holdpoint/schemas";
import { type MalformedRequest, type Player, Units } from "./player.ts";
import type { Answered, ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

const nobody = { rollout: "nobody", attempt: 0 };

export class ResourcesPlayer implements Player {
  readonly whileClosed = "waits";
  readonly #rig: ConformanceRig;
  readonly #run: string;
  readonly #seed: Json;
  readonly #tool: { readonly name: string; readonly arguments: Json };
  readonly #units = new Units();
  readonly doneAs = "tool.finished";
  readonly secrets: string[] = [];

  constructor(rig: ConformanceRig) {
    const { run, target } = rig.options;
    const { seed = {}, tool = { name: "none", arguments: {} } } = target.workload;
    this.#rig = rig;
    this.#run = run;
    this.#seed = seed;
    this.#tool = tool;
  }

  get malformed(): readonly MalformedRequest[] {
    const unnamed = { sessionId: "s", seed: this.#seed };
    return [
      { what: "a body that is no JSON", code: "invalid_request", send: () => this.#ask(nobody, "tool", "{") },
      {
        what: "a method that there is not",
        code: "invalid_request",
        send: () => this.#ask(nobody, "fly", { to: "main" }),
      },
      {
        what: "a seed without a rollout",
        code: "rollout_id_required",
        send: () => this.#rig.ask(seedSubject(this.#run, "resources", "main"), unnamed),
      },
      { what: "a tool call without a session", code: "not_found", send: () => this.#call(nobody, 0) },
    ];
  }

  async begin(episode: Episode): Promise<void> {
    const answer = await this.fresh(episode);
    must(answer.ok, `a seed was refused: ${JSON.stringify(answer)}`);
  }

  async advance(episode: Episode): Promise<string> {
    const result = resultOf(await this.probe(episode));
    this.#units.add(episode, result);
    return result;
  }

  async recall(episode: Episode): Promise<readonly string[]> {
    const results: string[] = [];
    for (const turn of this.#units.of(episode).keys()) results.push(resultOf(await this.#call(episode, turn)));
    return results;
  }

  async claim(from: Episode, to: Episode, units: number): Promise<void> {
    this.#units.continue(from, to, units);
    await this.begin(to);
  }

  fresh(episode: Episode): Promise<Answered> {
    return this.#seeded(episode, this.#seed);
  }

  reseed(episode: Episode, other: boolean): Promise<Answered> {
    const { otherSeed = this.#seed } = this.#rig.options.target.workload;
    return this.#seeded(episode, other ? otherSeed : this.#seed);
  }

  close(episode: Episode): Promise<Answered> {
    return this.#ask(episode, "close", { to: "main" });
  }

  probe(episode: Episode): Promise<Answered> {
    return this.#call(episode, this.#units.of(episode).length);
  }

  edgesOf(role: Role, episode: Episode): Edges {
    return role === "agent" ? { tools: this.#units.edge(episode) } : {};
  }

  async #seeded(episode: Episode, seed: Json): Promise<Answered> {
    const body = { ...episode, sessionId: `s-${episode.rollout}`, seed };
    const answer = await this.#rig.ask(seedSubject(this.#run, "resources", "main"), body);
    const token = SeedReply.safeParse(answer.ok ? answer.data : undefined).data?.access?.token;
    if (token !== undefined) this.secrets.push(token);
    return answer;
  }

  #call(episode: Episode, turn: number): Promise<Answered> {
    const { name, arguments: input } = this.#tool;
    return this.#ask(episode, "tool", { to: "main", turn, index: 0, name, arguments: JSON.stringify(input) });
  }

  #ask(episode: Episode, method: string, body: object | string): Promise<Answered> {
    return this.#rig.ask(rpcSubject(this.#run, episode, "resources", method), body);
  }
}

function resultOf(answer: Answered): string {
  must(answer.ok, `a tool call was refused: ${JSON.stringify(answer)}`);
  const reply = ToolReply.safeParse(answer.ok ? answer.data : undefined);
  must(reply.success, `a tool's reply is not { result }: ${JSON.stringify(answer)}`);
  return reply.data?.result.digest ?? "";
}
