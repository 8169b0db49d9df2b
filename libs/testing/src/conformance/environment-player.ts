/** The trainer, the agent and the resources server of an environment. */
import { decodeEvents, eventSchema } from "@holdpoint/eventsourcing";
import { type Episode, logEvents, resultSubject, seedSubject } from "@holdpoint/schemas";
import { setTimeout as pause } from "node:timers/promises";
import { contentOf, playServer } from "./played-servers.ts";
import type { Player } from "./player.ts";
import type { ConformanceRig } from "./rig.ts";
import { eventually, must } from "./waiting.ts";

const terms = { verify: "replay", rebinds: true, sandboxLent: false, grantsBound: false } as const;

/** How long a played activation lets itself be waited for, in milliseconds: short, so that it is asked for often. */
const pollMs = 50;

export async function environmentPlayer(rig: ConformanceRig): Promise<Player> {
  const { run, target, connectAs } = rig.options;
  const { seed: task = {} } = target.workload;
  const asked = new Map<string, number>();
  const ended = new Set<string>();
  const play = async (episode: Episode, method: string): Promise<object> => {
    if (method === "seed") return { terms, restart: null };
    if (method === "verify") return { verdict: contentOf(JSON.stringify({ reward: 1 })) };
    if (method !== "activate") return {};
    asked.set(keyOf(episode), (asked.get(keyOf(episode)) ?? 0) + 1);
    if (!ended.has(keyOf(episode))) await pause(pollMs);
    return ended.has(keyOf(episode)) ? { status: "ended", output: contentOf("done") } : { status: "running" };
  };
  const stops = [
    await playServer(await connectAs("agent"), { run, role: "agent" }, play),
    await playServer(await connectAs("resources"), { run, role: "resources" }, play),
  ];
  const dispatch = (episode: Episode) =>
    rig.ask(seedSubject(run, "environment", "main"), {
      ...episode,
      task,
      agent: "main",
      resources: "main",
      budgetMs: null,
      policyVersion: 0,
    });
  const works = async (episode: Episode) => {
    const before = asked.get(keyOf(episode)) ?? 0;
    await eventually(`it asks for the activation of ${keyOf(episode)}`, () =>
      (asked.get(keyOf(episode)) ?? 0) > before ? true : undefined,
    );
  };
  const begin = async (episode: Episode) => {
    const answer = await dispatch(episode);
    must(answer.ok, `a dispatch was refused: ${JSON.stringify(answer)}`);
    await works(episode);
  };
  return {
    whileClosed: "admission_closed",
    begin,
    advance: async (episode) => {
      await works(episode);
      return "";
    },
    recall: async (episode) => {
      await works(episode);
      return [];
    },
    claim: (_from, to) => begin(to),
    fresh: dispatch,
    probe: dispatch,
    malformed: [
      {
        what: "a body that is no JSON",
        code: "rollout_id_required",
        send: () => rig.ask(seedSubject(run, "environment", "main"), "[]"),
      },
      {
        what: "a dispatch without a rollout",
        code: "rollout_id_required",
        send: () => rig.ask(seedSubject(run, "environment", "main"), { task }),
      },
    ],
    edgesOf: () => ({}),
    finish: async (episode) => {
      ended.add(keyOf(episode));
      await eventually(`a result of ${keyOf(episode)}`, async () => ((await results(rig, episode)) > 0 ? true : undefined));
      return results(rig, episode);
    },
    stop: async () => {
      for (const stop of stops) stop();
    },
  };
}

/** How many results of the episode there are that say that it has finished, with the reward of the verdict. */
async function results(rig: ConformanceRig, { rollout, attempt }: Episode): Promise<number> {
  const { log, run } = rig.options;
  const schema = eventSchema(logEvents.environment);
  const subjects = [resultSubject(run, { role: "environment", instance: "main", worker: "0" })];
  let count = 0;
  await log.read({ upTo: await log.lastSequence(), subjects }, (message) => {
    for (const { event } of decodeEvents(message, schema).events) {
      if (event.type !== "episode.ended" || event.data.rollout !== rollout || event.data.attempt !== attempt) continue;
      if (event.data.status === "finished" && event.data.reward === 1) count += 1;
    }
  });
  return count;
}

function keyOf({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}
