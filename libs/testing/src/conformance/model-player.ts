/** The agent of a model server: it knows what a refusal means. */
import { type Episode, ParticipantEvent } from "@holdpoint/schemas";
import * as z from "zod";
import { digest } from "../simulated-process.ts";
import { type Player, Units } from "./player.ts";
import type { Answered, ConformanceRig } from "./rig.ts";
import { eventually, must } from "./waiting.ts";

const Completion = z.object({ choices: z.tuple([z.object({ message: z.record(z.string(), z.unknown()) })]) });
const Refusal = z.object({ error: z.looseObject({ code: z.string() }) });

export function modelPlayer(rig: ConformanceRig): Player {
  const { target } = rig.options;
  const { request = () => ({}) } = target.workload;
  const units = new Units();
  const post = async (headers: Record<string, string>, body: string): Promise<Answered | undefined> => {
    const url = await endpointOf(rig);
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
  };
  const send = (headers: Record<string, string>, body: string) => eventually("the model", () => post(headers, body));
  const call = (episode: Episode, turn: number) => {
    const named = { "x-holdpoint-rollout": episode.rollout, "x-holdpoint-attempt": String(episode.attempt) };
    return send({ ...named, "x-holdpoint-turn": String(turn) }, JSON.stringify(request(turn)));
  };
  const responseOf = (answer: Answered): string => {
    must(answer.ok, `a call was refused: ${JSON.stringify(answer)}`);
    const completion = Completion.safeParse(answer.ok ? answer.data : undefined);
    must(completion.success, `what came is no chat completion: ${JSON.stringify(answer)}`);
    return digest(JSON.stringify(completion.data?.choices[0].message));
  };
  const advance = async (episode: Episode) => {
    const response = responseOf(await call(episode, units.of(episode).length));
    units.add(episode, response);
    return response;
  };
  return {
    whileClosed: "admission_closed",
    begin: async (episode) => void (await advance(episode)),
    advance,
    recall: async (episode) => {
      const responses: string[] = [];
      for (const turn of units.of(episode).keys()) responses.push(responseOf(await call(episode, turn)));
      return responses;
    },
    claim: async (from, to, count) => units.continue(from, to, count),
    fresh: (episode) => call(episode, 0),
    probe: (episode) => call(episode, units.of(episode).length),
    malformed: [
      { what: "a call without identity", code: "rollout_id_required", send: () => send({}, JSON.stringify(request(0))) },
      {
        what: "a body that is no JSON",
        code: "invalid_request",
        send: () => send({ "x-holdpoint-rollout": "nobody", "x-holdpoint-attempt": "0" }, "{"),
      },
    ],
    edgesOf: (role, episode) => (role === "agent" ? { calls: units.edge(episode) } : {}),
  };
}

/** Where its latest process says that it serves. */
function endpointOf(rig: ConformanceRig): Promise<string> {
  return eventually("an endpoint in its announcement", async () => {
    const announced = (await rig.said()).filter(({ event }) => event.type === "participant.announced").at(-1);
    const parsed = ParticipantEvent.safeParse(announced?.event);
    if (parsed.data?.type !== "participant.announced") return undefined;
    return parsed.data.data.endpoint ?? undefined;
  });
}
