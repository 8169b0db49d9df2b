/** An agent written with the SDK, on a broker, with a model and a tool in the same process. */
import type { EventLog } from "@holdpoint/eventsourcing";
import { openBlobs, openLog } from "@holdpoint/jetstream";
import {
  type AgentDefinition,
  type AgentParticipant,
  agentSpec,
  Participant,
  serveAgent,
  sha256,
} from "@holdpoint/participant";
import { type Episode, filters, rpcSubject } from "@holdpoint/schemas";
import { joinRun, MemoryMessenger } from "@holdpoint/testing";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { withCoordinator, type Room } from "./room.ts";

const Reply = z.looseObject({ ok: z.boolean(), data: z.looseObject({ status: z.string().optional() }).optional() });

/** What the tool gives after its work. */
const toolText = "done";
const toolReply = JSON.stringify({
  ok: true,
  data: { result: { digest: sha256(toolText), bytes: toolText.length, text: toolText } },
});

/** A log that adds up how long its appends take, one after the other, and how many bytes they have. */
export class TimedLog {
  readonly log: EventLog;
  ms = 0;
  bytes = 0;

  constructor(log: EventLog) {
    this.log = {
      stream: log.stream,
      append: async (draft, signal) => {
        const since = performance.now();
        const result = await log.append(draft, signal);
        this.ms += performance.now() - since;
        this.bytes += draft.body.length;
        return result;
      },
      appendBatch: (drafts, signal) => log.appendBatch(drafts, signal),
      get: (sequence) => log.get(sequence),
      lastOn: (subject) => log.lastOn(subject),
      lastSequence: () => log.lastSequence(),
      read: (range, each) => log.read(range, each),
      tail: (range, each) => log.tail(range, each),
    };
  }
}

export interface Bench {
  readonly agent: AgentParticipant;
  readonly appends: TimedLog;
  readonly messenger: MemoryMessenger;
  /** The participants that are played here remember nothing from here back. */
  readonly forget: () => void;
  /** Seeds and activates; returns when the activation has ended. */
  readonly run: (episode: Episode) => Promise<void>;
}

/** Runs `measure` with an agent whose tool does `work`, and whose model says the same each time. */
export async function withAgent<T>(
  room: Room,
  { definition, work }: { readonly definition: AgentDefinition; readonly work: () => void },
  measure: (bench: Bench) => Promise<T>,
): Promise<T> {
  const model = createServer((request, response) => {
    request.resume();
    request.on("end", () =>
      response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content: "go on" } }] })),
    );
  });
  await new Promise<void>((resolve) => void model.listen(0, "127.0.0.1", resolve));
  const { port } = z.object({ port: z.number() }).parse(model.address());
  const messenger = new MemoryMessenger();
  await messenger.subscribe(filters.rpcOf(room.run, "resources"), ({ respond }) => {
    work();
    respond(toolReply);
  });
  try {
    return await withCoordinator(room, async () => {
      const named = { role: "model" as const, instance: "main", worker: "0", mode: "exported" as const };
      const played = await joinRun(room.connection, room.run, { ...named, endpoint: `http://127.0.0.1:${port}` });
      const appends = new TimedLog(openLog(await room.connectAs("agent"), room.run));
      const agent = await openAgent(room, { appends, messenger, definition });
      const ask = async (episode: Episode, method: string, body: object) => {
        const text = JSON.stringify({ to: "main", ...body });
        const reply = await messenger.request(rpcSubject(room.run, episode, "agent", method), text);
        return Reply.parse(JSON.parse(new TextDecoder().decode(reply)));
      };
      const run = async (episode: Episode) => {
        // Until it was let join it takes no sessions.
        while (!(await ask(episode, "seed", { ...episode, sessionId: "s", seed: {} })).ok) await delay(5);
        while ((await ask(episode, "activate", { policyVersion: 0 })).data?.status !== "ended");
      };
      const forget = () => void played.process.obeyed.splice(0);
      const result = await measure({ agent, appends, messenger, forget, run });
      await agent.stop();
      await played.stop();
      return result;
    });
  } finally {
    model.close();
  }
}

async function openAgent(
  room: Room,
  { appends, messenger, definition }: Pick<Bench, "appends" | "messenger"> & { readonly definition: AgentDefinition },
): Promise<AgentParticipant> {
  const agent = await Participant.open(
    {
      run: room.run,
      instance: "main",
      worker: "0",
      incarnation: "bench-agent",
      log: appends.log,
      blobs: openBlobs(room.connection, room.run, sha256),
      messenger,
      clock: () => Date.now(),
      fenced: () => {},
      trouble: (what, error) => process.stderr.write(`${what} ${String(error)}\n`),
    },
    await agentSpec(definition),
  );
  await serveAgent(definition, agent);
  return agent;
}
