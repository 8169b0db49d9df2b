/** The environment, the model and the resources server of an agent. */
import {
  ActivateReply,
  type Edges,
  type Episode,
  type Role,
  rpcSubject,
  seedSubject,
  ToolRequest,
} from "@holdpoint/schemas";
import * as z from "zod";
import { digest } from "../simulated-process.ts";
import type { PlayedModel } from "./played-model.ts";
import { contentOf, playServer } from "./played-servers.ts";
import { type MalformedRequest, type Player, Units } from "./player.ts";
import type { Answered, ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

const Conversation = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
});
const NamedCall = z.object({ turn: ToolRequest.shape.turn });
const nobody = { rollout: "nobody", attempt: 0 };

/** What the played tool answers: a function of the call's name, so that asking again gets the same. */
function toolResult({ rollout }: Episode, turn: number): string {
  return `what turn ${turn} of ${rollout} gave`;
}

export class AgentPlayer implements Player {
  readonly whileClosed = "waits";
  readonly #rig: ConformanceRig;
  readonly #run: string;
  readonly #model: PlayedModel;
  readonly #units = new Units();
  #stopTools = () => {};

  private constructor(rig: ConformanceRig, model: PlayedModel) {
    this.#rig = rig;
    this.#run = rig.options.run;
    this.#model = model;
  }

  /** @param model answers the agent's calls; its tool calls are the workload's */
  static async start(rig: ConformanceRig, model: PlayedModel): Promise<AgentPlayer> {
    const player = new AgentPlayer(rig, model);
    const { run, connectAs } = rig.options;
    const place = { run, role: "resources" as const };
    player.#stopTools = await playServer(await connectAs("resources"), place, async (episode, _, body) => {
      return { result: contentOf(toolResult(episode, NamedCall.parse(body).turn)) };
    });
    model.isClosed = () => rig.isClosed;
    rig.heard = () => {
      if (rig.isClosed) model.refuseAll();
    };
    return player;
  }

  get malformed(): readonly MalformedRequest[] {
    const { seed = {} } = this.#rig.options.target.workload;
    return [
      {
        what: "a body that is no JSON",
        code: "invalid_request",
        send: () => this.#rig.ask(rpcSubject(this.#run, nobody, "agent", "activate"), "{"),
      },
      {
        what: "a seed without a rollout",
        code: "rollout_id_required",
        send: () => this.#rig.ask(seedSubject(this.#run, "agent", "main"), { sessionId: "s", seed }),
      },
      { what: "an activation without a session", code: "not_found", send: () => this.probe(nobody) },
    ];
  }

  /** Up to its first model call. */
  async begin(episode: Episode): Promise<void> {
    const answer = await this.fresh(episode);
    must(answer.ok, `a seed was refused: ${JSON.stringify(answer)}`);
    void this.probe(episode).catch(() => {}); // it is killed meanwhile
    await this.#model.pending(episode);
  }

  /** A response of the model with a tool call, up to the next call of the model. */
  async advance(episode: Episode): Promise<string> {
    const result = toolResult(episode, this.#units.of(episode).length);
    await this.#model.answer(episode);
    await this.#model.pending(episode);
    this.#units.add(episode, result);
    return result;
  }

  async recall(episode: Episode): Promise<readonly string[]> {
    const { messages } = Conversation.parse(JSON.parse(await this.#model.pending(episode)));
    return messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
  }

  async claim(from: Episode, to: Episode, units: number): Promise<void> {
    this.#units.continue(from, to, units);
    this.#model.continue(to, units);
    await this.begin(to);
  }

  fresh(episode: Episode): Promise<Answered> {
    return this.reseed(episode, false);
  }

  reseed(episode: Episode, other: boolean): Promise<Answered> {
    const { seed = {}, otherSeed = {} } = this.#rig.options.target.workload;
    const body = { ...episode, sessionId: `s-${episode.rollout}`, seed: other ? otherSeed : seed };
    return this.#rig.ask(seedSubject(this.#run, "agent", "main"), body);
  }

  close(episode: Episode): Promise<Answered> {
    return this.#rig.ask(rpcSubject(this.#run, episode, "agent", "close"), { to: "main" });
  }

  async probe(episode: Episode): Promise<Answered> {
    const subject = rpcSubject(this.#run, episode, "agent", "activate");
    const answer = await this.#rig.ask(subject, { to: "main", policyVersion: 0 });
    must(
      !answer.ok || ActivateReply.safeParse(answer.data).success,
      `to activate it answered ${JSON.stringify(answer)}`,
    );
    return answer;
  }

  edgesOf(role: Role, episode: Episode): Edges {
    const { received } = this.#units.edge(episode);
    const last = received - 1;
    if (role === "model") return { calls: { received, last: last < 0 ? null : digest(this.#model.textOf(last)) } };
    if (role !== "resources") return {};
    return { tools: { received, last: last < 0 ? null : digest(toolResult(episode, last)) } };
  }

  async stop(): Promise<void> {
    this.#stopTools();
    await this.#model.stop();
  }
}
