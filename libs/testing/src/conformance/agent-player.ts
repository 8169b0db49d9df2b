/** The environment, the model and the resources server of an agent. */
import { ActivateReply, type Episode, rpcSubject, seedSubject, ToolRequest } from "@holdpoint/schemas";
import * as z from "zod";
import { digest } from "../simulated-process.ts";
import type { PlayedModel } from "./played-model.ts";
import { contentOf, playServer } from "./played-servers.ts";
import { type Player, Units } from "./player.ts";
import type { ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

const Conversation = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
});

/** What the played tool answers: a function of the call's name, so that asking again gets the same. */
function toolResult({ rollout }: Episode, turn: number): string {
  return `what turn ${turn} of ${rollout} gave`;
}

/** @param model answers the agent's calls; its tool calls are the workload's */
export async function agentPlayer(rig: ConformanceRig, model: PlayedModel): Promise<Player> {
  const { run, target, connectAs } = rig.options;
  const { seed = {} } = target.workload;
  const units = new Units();
  const stopTools = await playServer(await connectAs("resources"), { run, role: "resources" }, async (episode, _, body) => {
    const { turn } = ToolRequest.pick({ turn: true }).strip().parse(body);
    return { result: contentOf(toolResult(episode, turn)) };
  });
  model.isClosed = () => rig.isClosed;
  rig.heard = () => {
    if (rig.isClosed) model.refuseAll();
  };
  const seeded = (episode: Episode) =>
    rig.ask(seedSubject(run, "agent", "main"), { ...episode, sessionId: `s-${episode.rollout}`, seed });
  const activate = (episode: Episode) =>
    rig.ask(rpcSubject(run, episode, "agent", "activate"), { to: "main", policyVersion: 0 });
  const begin = async (episode: Episode) => {
    const answer = await seeded(episode);
    must(answer.ok, `a seed was refused: ${JSON.stringify(answer)}`);
    void activate(episode).then(
      (reply) => must(!reply.ok || ActivateReply.safeParse(reply.data).success, "activate answered something else"),
      () => {}, // it was killed meanwhile
    );
    await model.pending(episode);
  };
  const recall = async (episode: Episode) => {
    const { messages } = Conversation.parse(JSON.parse(await model.pending(episode)));
    return messages.filter(({ role }) => role === "tool").map(({ content }) => String(content));
  };
  const nobody = { rollout: "nobody", attempt: 0 };
  return {
    whileClosed: "waits",
    begin,
    advance: async (episode) => {
      const result = toolResult(episode, units.of(episode).length);
      await model.answer(episode);
      await model.pending(episode);
      units.add(episode, result);
      return result;
    },
    recall,
    claim: async (from, to, count) => {
      units.continue(from, to, count);
      model.continue(to, count);
      await begin(to);
    },
    fresh: seeded,
    probe: activate,
    malformed: [
      {
        what: "a body that is no JSON",
        code: "invalid_request",
        send: () => rig.ask(rpcSubject(run, nobody, "agent", "activate"), "{"),
      },
      {
        what: "a seed without a rollout",
        code: "rollout_id_required",
        send: () => rig.ask(seedSubject(run, "agent", "main"), { sessionId: "s", seed }),
      },
      { what: "an activation without a session", code: "not_found", send: () => activate(nobody) },
    ],
    edgesOf: (role, episode) => {
      const { received } = units.edge(episode);
      const calls = { received, last: received === 0 ? null : digest(model.textOf(received - 1)) };
      const tools = { received, last: received === 0 ? null : digest(toolResult(episode, received - 1)) };
      if (role === "model") return { calls };
      return role === "resources" ? { tools } : {};
    },
    stop: async () => {
      stopTools();
      await model.stop();
    },
  };
}
