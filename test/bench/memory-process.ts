/** Holds sessions of an agent and lets them go, and writes what is on its heap: run by `memory.ts`, with a collector that can be called. */
import { Controller } from "@holdpoint/client";
import { defineAgent, sha256 } from "@holdpoint/participant";
import type { AgentEvent, Episode } from "@holdpoint/schemas";
import * as z from "zod";
import { withAgent } from "./agent-room.ts";
import { show, table } from "./figures.ts";
import { inRoom, type Room } from "./room.ts";

const sessions = 10_000;
const rounds = 10;
const share = 100;
const turnsOfEach = 3;

function heapMb(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

function content(text: string) {
  return { digest: sha256(text), bytes: text.length, text };
}

/** A session after a few turns. */
function history(episode: Episode): readonly AgentEvent[] {
  const seed = content(JSON.stringify({ rollout: episode.rollout, task: "x".repeat(200) }));
  const turns = Array.from({ length: turnsOfEach }, (_, turn): readonly AgentEvent[] => [
    { type: "call.requested", data: { ...episode, turn, request: sha256(`${turn}`) } },
    { type: "call.received", data: { ...episode, turn, response: content(`response ${turn}`.padEnd(200)) } },
    { type: "tool.returned", data: { ...episode, turn, index: 0, result: content(`result ${turn}`.padEnd(200)) } },
  ]);
  return [{ type: "session.seeded", data: { ...episode, sessionId: "s", seed } }, ...turns.flat()];
}

async function retireAndForget(room: Room, episodes: readonly Episode[]): Promise<void> {
  const controller = new Controller(room);
  for (let from = 0; from < episodes.length; from += 2_000) {
    const rollouts = episodes.slice(from, from + 2_000);
    for (const command of [
      { operation: "retire" as const, rollouts },
      { operation: "forget" as const, rollouts: rollouts.map(({ rollout }) => rollout) },
    ]) {
      const outcome = await controller.command({ ...command, timeoutMs: 60_000 });
      if (!outcome.ok) throw new Error(`${command.operation}: ${JSON.stringify(outcome.problem)}`);
    }
  }
}

const never = () => new Promise<string>(() => {});
const definition = defineAgent({ name: "bench", mode: "exported", seed: z.unknown(), activate: never });
const work = () => {};
const rows = await inRoom((room) =>
  withAgent(room, { definition, work }, async ({ agent, forget }) => {
    const found: string[][] = [];
    const emptyMb = heapMb();
    for (let at = 0; at < rounds; at++) {
      const episodes = Array.from({ length: sessions }, (_, index) => ({ rollout: `r${at}-${index}`, attempt: 0 }));
      for (let from = 0; from < sessions; from += share) {
        await agent.record(...episodes.slice(from, from + share).flatMap(history));
      }
      const heldMb = heapMb();
      await retireAndForget(room, episodes);
      forget();
      const bytes = ((heldMb - emptyMb) * 2 ** 20) / sessions;
      found.push([show((at + 1) * sessions), ...[emptyMb, heldMb, bytes, heapMb()].map(show)]);
    }
    return found;
  }),
);
const head = ["rollouts so far", "heap before any, MB", "with 10,000 held, MB", "bytes a session", "after forget, MB"];
process.stdout.write(table(head, rows));
process.exit(0);
