/**
 * Replay of 1,000,000 events to a state, beside the bare consumer that only counts messages, over the same stream in turns.
 *
 * Once with one event a message, which is the worst that a log can hold, and once with envelopes of 100.
 */
import { decodeEvents, type Draft, encodeEvents, eventSchema, type StoredMessage } from "@holdpoint/eventsourcing";
import { logEvents, type ParticipantEvent, type AgentEvent } from "@holdpoint/schemas";
import { SessionFold, type SessionKind } from "@holdpoint/session";
import { median, show, table } from "./figures.ts";
import { inRoom, type Room } from "./room.ts";

const eventCount = Number(process.env["BENCH_EVENTS"] ?? 1_000_000);
const sessions = 1_000;
const agentEvents = eventSchema(logEvents.agent);
const runs = 3;

const countingKind: SessionKind<number, AgentEvent | ParticipantEvent> = {
  open: (event) => (event.type === "session.seeded" ? 0 : undefined),
  evolve: (count) => count + 1,
  fix: (count) => count,
  summary: (count) => count,
  edges: () => ({}),
};

const content = { digest: "0".repeat(64), bytes: 2, text: "{}" };

function eventAt(index: number): AgentEvent {
  const episode = { rollout: `r${index % sessions}`, attempt: 0 };
  if (index < sessions) return { type: "session.seeded", data: { ...episode, sessionId: "s", seed: content } };
  return { type: "call.received", data: { ...episode, turn: Math.floor(index / sessions), response: content } };
}

/** Fills the stream with atomic batches, which is the quickest way to write many messages. */
async function fill({ log, run }: Room, perMessage: number): Promise<number> {
  const subject = `hp.${run}.log.agent.main.0`;
  const perBatch = Math.min(1_000, Math.floor(4_000_000 / (perMessage * 200)));
  let sequence = 0;
  for (let written = 0; written < eventCount; written += perBatch * perMessage) {
    const count = Math.min(perBatch, Math.ceil((eventCount - written) / perMessage));
    const drafts = Array.from({ length: count }, (_, at): Draft => {
      const first = written + at * perMessage;
      const events = Array.from({ length: perMessage }, (_unused, next) => eventAt(first + next));
      const expected = at === 0 ? { subject, sequence } : { subject: `hp.${run}.log.agent.none.0`, sequence: 0 };
      return { ...encodeEvents("bench", events), subject, messageId: `m${first}`, expected };
    });
    const result = await log.appendBatch(drafts);
    if (!result.stored) throw new Error("the bench's own batch was refused");
    sequence = result.sequence;
  }
  return sequence;
}

async function bare({ log }: Room, upTo: number): Promise<number> {
  let messages = 0;
  const start = performance.now();
  await log.read({ upTo }, () => void (messages += 1));
  return messages / (performance.now() - start);
}

async function folded({ log }: Room, upTo: number): Promise<number> {
  const fold = new SessionFold(countingKind);
  let messages = 0;
  const start = performance.now();
  await log.read({ upTo }, (message: StoredMessage) => {
    messages += 1;
    for (const recorded of decodeEvents(message, agentEvents).events) fold.apply(recorded);
  });
  return messages / (performance.now() - start);
}

export async function measureReplay(): Promise<string> {
  const rows: string[][] = [];
  for (const perMessage of [1, 100]) rows.push(await inRoom((room) => replayRow(room, perMessage)));
  const head = [
    "events a message",
    "fold events/s",
    "bare read events/s",
    "ours ÷ bare",
    "resident MB, least and most",
  ];
  return table(head, rows);
}

async function replayRow(room: Room, perMessage: number): Promise<string[]> {
  const upTo = await fill(room, perMessage);
  const ours: number[] = [];
  const floor: number[] = [];
  const resident: number[] = [];
  for (let run = 0; run < runs; run++) {
    floor.push((await bare(room, upTo)) * 1000 * perMessage);
    const sampler = setInterval(() => resident.push(process.memoryUsage.rss() / 2 ** 20), 200);
    ours.push((await folded(room, upTo)) * 1000 * perMessage);
    clearInterval(sampler);
  }
  const ratio = median(ours) / median(floor);
  const memory = `${show(Math.min(...resident))} to ${show(Math.max(...resident))}`;
  return [String(perMessage), show(median(ours)), show(median(floor)), show(ratio), memory];
}
