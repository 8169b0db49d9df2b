/** The agent of a model server: it knows what a refusal means. */
import { type Edges, type Episode, ParticipantEvent, type Role } from "@holdpoint/schemas";
import * as z from "zod";
import { digest } from "../simulated-process.ts";
import { type MalformedRequest, type Player, Units } from "./player.ts";
import type { Answered, ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

const Completion = z.object({ choices: z.tuple([z.object({ message: z.record(z.string(), z.unknown()) })]) });
const Refusal = z.object({ error: z.looseObject({ code: z.string() }) });

type Headers = Readonly<Record<string, string>>;

export class ModelPlayer implements Player {
  readonly whileClosed = "admission_closed";
  readonly #rig: ConformanceRig;
  readonly #units = new Units();
  readonly doneAs = "call.finished";

  constructor(rig: ConformanceRig) {
    this.#rig = rig;
  }

  get malformed(): readonly MalformedRequest[] {
    const named = { "x-holdpoint-rollout": "nobody", "x-holdpoint-attempt": "0" };
    return [
      { what: "a call without identity", code: "rollout_id_required", send: () => this.#send({}, this.#request(0)) },
      { what: "a body that is no JSON", code: "invalid_request", send: () => this.#send(named, "{") },
    ];
  }

  async begin(episode: Episode): Promise<void> {
    await this.advance(episode);
  }

  async advance(episode: Episode): Promise<string> {
    const response = responseOf(await this.#rig.admitted(() => this.probe(episode)));
    this.#units.add(episode, response);
    return response;
  }

  async recall(episode: Episode): Promise<readonly string[]> {
    const responses: string[] = [];
    for (const turn of this.#units.of(episode).keys()) {
      responses.push(responseOf(await this.#rig.admitted(() => this.#call(episode, turn))));
    }
    return responses;
  }

  claim(from: Episode, to: Episode, units: number): Promise<void> {
    this.#units.continue(from, to, units);
    return Promise.resolve();
  }

  fresh(episode: Episode): Promise<Answered> {
    return this.#call(episode, 0);
  }

  probe(episode: Episode): Promise<Answered> {
    return this.#call(episode, this.#units.of(episode).length);
  }

  edgesOf(role: Role, episode: Episode): Edges {
    return role === "agent" ? { calls: this.#units.edge(episode) } : {};
  }

  #request(turn: number): string {
    return JSON.stringify(this.#rig.options.target.workload.request?.(turn) ?? {});
  }

  #call({ rollout, attempt }: Episode, turn: number): Promise<Answered> {
    const headers = {
      "x-holdpoint-rollout": rollout,
      "x-holdpoint-attempt": String(attempt),
      "x-holdpoint-turn": String(turn),
    };
    return this.#send(headers, this.#request(turn));
  }

  #send(headers: Headers, body: string): Promise<Answered> {
    return this.#rig.patience.until("an answer of the model", () => this.#post(headers, body));
  }

  async #post(headers: Headers, body: string): Promise<Answered | undefined> {
    const url = await this.#endpoint();
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-holdpoint-aware": "1", ...headers },
      body,
    }).catch(() => undefined);
    if (response === undefined) return undefined;
    const json: unknown = await response.json().catch(() => undefined);
    if (response.ok) return { ok: true, data: json };
    const refusal = Refusal.safeParse(json);
    must(refusal.success, `an error of status ${response.status} has no { error: { code } }: ${JSON.stringify(json)}`);
    const code = refusal.data?.error.code ?? "";
    return code === "unavailable" ? undefined : { ok: false, code };
  }

  /** Where its latest process says that it serves. */
  #endpoint(): Promise<string> {
    return this.#rig.patience.until("an endpoint in its announcement", async () => {
      const said = (await this.#rig.said()).map(({ event }) => ParticipantEvent.safeParse(event).data);
      const announced = said.findLast((event) => event?.type === "participant.announced");
      return announced?.type === "participant.announced" ? (announced.data.endpoint ?? undefined) : undefined;
    });
  }
}

function responseOf(answer: Answered): string {
  must(answer.ok, `a call was refused: ${JSON.stringify(answer)}`);
  const completion = Completion.safeParse(answer.ok ? answer.data : undefined);
  must(completion.success, `what came is no chat completion: ${JSON.stringify(answer)}`);
  return digest(JSON.stringify(completion.data?.choices[0].message));
}
