/** The agent and the environment of a resources server. */
import { type Episode, rpcSubject, seedSubject, ToolReply } from "@holdpoint/schemas";
import { type Player, Units } from "./player.ts";
import type { Answered, ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

export function resourcesPlayer(rig: ConformanceRig): Player {
  const { run, target } = rig.options;
  const { seed = {}, tool = { name: "none", arguments: {} } } = target.workload;
  const units = new Units();
  const send = (episode: Episode, method: string, body: object | string) =>
    rig.ask(rpcSubject(run, episode, "resources", method), body);
  const seeded = (episode: Episode) =>
    rig.ask(seedSubject(run, "resources", "main"), { ...episode, sessionId: `s-${episode.rollout}`, seed });
  const call = (episode: Episode, turn: number) => {
    const body = { to: "main", turn, index: 0, name: tool.name, arguments: JSON.stringify(tool.arguments) };
    return send(episode, "tool", body);
  };
  const resultOf = (answer: Answered): string => {
    must(answer.ok, `a tool call was refused: ${JSON.stringify(answer)}`);
    const reply = ToolReply.safeParse(answer.ok ? answer.data : undefined);
    must(reply.success, `a tool's reply is not { result }: ${JSON.stringify(answer)}`);
    return reply.data?.result.digest ?? "";
  };
  const begin = async (episode: Episode) => {
    const answer = await seeded(episode);
    must(answer.ok, `a seed was refused: ${JSON.stringify(answer)}`);
  };
  const nobody = { rollout: "nobody", attempt: 0 };
  return {
    whileClosed: "waits",
    begin,
    advance: async (episode) => {
      const result = resultOf(await call(episode, units.of(episode).length));
      units.add(episode, result);
      return result;
    },
    recall: async (episode) => {
      const results: string[] = [];
      for (const turn of units.of(episode).keys()) results.push(resultOf(await call(episode, turn)));
      return results;
    },
    claim: async (from, to, count) => {
      units.continue(from, to, count);
      await begin(to);
    },
    fresh: seeded,
    probe: (episode) => call(episode, units.of(episode).length),
    malformed: [
      { what: "a body that is no JSON", code: "invalid_request", send: () => send(nobody, "tool", "{") },
      { what: "a method that there is not", code: "invalid_request", send: () => send(nobody, "fly", { to: "main" }) },
      {
        what: "a seed without a rollout",
        code: "rollout_id_required",
        send: () => rig.ask(seedSubject(run, "resources", "main"), { sessionId: "s", seed }),
      },
      { what: "a tool call without a session", code: "not_found", send: () => call(nobody, 0) },
    ],
    edgesOf: (role, episode) => (role === "agent" ? { tools: units.edge(episode) } : {}),
  };
}
