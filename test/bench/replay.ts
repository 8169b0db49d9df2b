/**
 * Replay of 1,000,000 events to a state, over the same stream in turns with the floor: the client's own ordered consumer, which
 * only counts messages, or counts them and parses their JSON.
 *
 * Once with one event a message, which is the worst that a log can hold, and once with envelopes of 100.
 */
import { jetstream, type JsMsg } from "@nats-io/jetstream";
import { decodeEvents, type Draft, encodeEvents, eventSchema, type StoredMessage } from "@holdpoint/eventsourcing";
import { type AgentEvent, logEvents, type ParticipantEvent, streamName } from "@holdpoint/schemas";
import { SessionFold, type SessionKind } from "@holdpoint/session";
import { connect } from "nats";
import { median, show, table } from "./figures.ts";
import { inRoom, type Room } from "./room.ts";

export const eventCount = Number(process.env["BENCH_EVENTS"] ?? 1_000_000);
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
export async function fill({ log, run }: Room, perMessage: number): Promise<number> {
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

/** Messages a millisecond of the client's ordered consumer, with a callback and so many on their way that more is not faster. */
async function floor(
  { url, user, password, run }: Room,
  { upTo, wanted }: { readonly upTo: number; readonly wanted: number },
  look: (message: JsMsg) => void,
): Promise<number> {
  const options = { servers: url, user, pass: password, inboxPrefix: `_INBOX_${user}` };
  const connection = await connect({ ...options, noAsyncTraces: true });
  const consumer = await jetstream(connection).consumers.get(streamName(run), {});
  const start = performance.now();
  await new Promise<void>((resolve, reject) => {
    const callback = (message: JsMsg) => {
      look(message);
      if (message.seq === upTo) resolve();
    };
    consumer.consume({ max_messages: wanted, callback }).catch(reject);
  });
  const rate = upTo / (performance.now() - start);
  await connection.close();
  return rate;
}

/** Messages a millisecond of our reader, with every event folded. */
async function folded({ log }: Room, upTo: number): Promise<number> {
  const fold = new SessionFold(countingKind);
  const start = performance.now();
  await log.read({ upTo }, (message: StoredMessage) => {
    for (const recorded of decodeEvents(message, agentEvents).events) fold.apply(recorded);
  });
  return upTo / (performance.now() - start);
}

export async function measureReplay(): Promise<string> {
  const rows: string[][] = [];
  for (const perMessage of [1, 100]) rows.push(await inRoom((room) => replayRow(room, perMessage)));
  const head = [
    "events a message",
    "fold events/s",
    "floor events/s",
    "floor with JSON.parse",
    "ours ÷ floor",
    "ours ÷ floor with JSON.parse",
    "resident MB, least and most",
  ];
  return table(head, rows);
}

async function replayRow(room: Room, perMessage: number): Promise<string[]> {
  const upTo = await fill(room, perMessage);
  const ours: number[] = [];
  const counting: number[] = [];
  const parsing: number[] = [];
  const resident: number[] = [];
  const reading = { upTo, wanted: perMessage === 1 ? 5_000 : 500 };
  for (let run = 0; run < runs; run++) {
    counting.push((await floor(room, reading, () => {})) * 1000 * perMessage);
    parsing.push((await floor(room, reading, (message) => void message.json())) * 1000 * perMessage);
    const sampler = setInterval(() => resident.push(process.memoryUsage.rss() / 2 ** 20), 200);
    ours.push((await folded(room, upTo)) * 1000 * perMessage);
    clearInterval(sampler);
  }
  const rates = [ours, counting, parsing].map(median);
  const ratios = [counting, parsing].map((floors) => median(ours) / median(floors));
  const memory = `${show(Math.min(...resident))} to ${show(Math.max(...resident))}`;
  return [String(perMessage), ...rates.map(show), ...ratios.map(show), memory];
}
