/**
 * What it costs to be checkpointable while no checkpoint is taken: an episode of 1,000 tool calls of two milliseconds each, as an
 * agent's steps, and as plain requests to the same tool in the same process. In turns, in one run. The durable appends of the agent
 * are timed apart: what is left beside them and the work is the SDK's own.
 */
import { type AgentSession, defineAgent } from "@holdpoint/participant";
import { rpcSubject } from "@holdpoint/schemas";
import * as z from "zod";
import { type Bench, withAgent } from "./agent-room.ts";
import { median, show, table } from "./figures.ts";
import { inRoom } from "./room.ts";

const steps = 1_000;
const stepMs = 2;
const rounds = 5;

/** Busy for as long as a step takes: a timer would be late by more than what is measured. */
function work(): void {
  const end = performance.now() + stepMs;
  while (performance.now() < end);
}

async function activate(session: AgentSession<unknown>): Promise<string> {
  for (let step = 0; step < steps; step++) await session.tool("work", "{}");
  return "done";
}

interface Round {
  readonly plainMs: number;
  readonly agentMs: number;
  readonly appendsMs: number;
}

async function measured({ appends, messenger, run }: Bench, at: number): Promise<Round> {
  const episode = { rollout: `r${at}`, attempt: 0 };
  const subject = rpcSubject("bench", episode, "resources", "tool");
  let since = performance.now();
  for (let step = 0; step < steps; step++) {
    const body = JSON.stringify({ to: "main", turn: step, index: 0, name: "work", arguments: "{}" });
    JSON.parse(new TextDecoder().decode(await messenger.request(subject, body)));
  }
  const plainMs = performance.now() - since;
  appends.ms = 0;
  since = performance.now();
  await run(episode);
  return { plainMs, agentMs: performance.now() - since, appendsMs: appends.ms };
}

export async function measureSteps(): Promise<string> {
  const definition = defineAgent({ name: "bench", mode: "exported", seed: z.unknown(), activate });
  const taken = await inRoom((room) =>
    withAgent(room, { definition, work }, async (bench) => {
      await measured(bench, 0); // code that is not compiled yet
      const all: Round[] = [];
      for (let at = 1; at <= rounds; at++) all.push(await measured(bench, at));
      return all;
    }),
  );
  const rows = taken.map(({ plainMs, agentMs, appendsMs }) => {
    return [plainMs, agentMs, appendsMs, agentMs - appendsMs - plainMs]
      .map(show)
      .concat(share({ plainMs, agentMs, appendsMs }));
  });
  const middle = show(median(taken.map(overhead)));
  return `${table(["plain ms", "agent ms", "of it appends ms", "the rest ms", "the rest ÷ plain"], rows)}\n\nmedian ${middle} %`;
}

/** In percent of the plain steps. */
function overhead({ plainMs, agentMs, appendsMs }: Round): number {
  return (100 * (agentMs - appendsMs - plainMs)) / plainMs;
}

function share(round: Round): string {
  return `${show(overhead(round))} %`;
}
