/**
 * Durable events a second through the writer of a process, beside the floor: the same bytes in messages of as many events,
 * published one after the other by the bare client with the same expectations.
 */
import { LogWriter } from "@holdpoint/participant";
import { jetstream } from "@nats-io/jetstream";
import { fork } from "node:child_process";
import { connect } from "nats";
import { type Figures, figuresOf, show, table } from "./figures.ts";
import { inRoom, type Room } from "./room.ts";

const eventBytes = 200;
const event = { type: "bench.event", data: { rollout: "r1", attempt: 0, filler: "x".repeat(eventBytes - 70) } };

/** How long each cell is measured. */
const spanMs = 3_000;

interface Cell {
  readonly perSecond: number;
  readonly latencyMs: Figures;
}

/** `sessions` loops in one process, each with one event on its way at a time. */
export async function writerCell(
  { log, run }: Pick<Room, "log" | "run">,
  sessions: number,
  instance: string,
): Promise<Cell> {
  const { writer } = await LogWriter.claim(
    {
      log,
      run,
      writer: { role: "agent", instance, worker: "0" },
      incarnation: `bench-${instance}`,
      now: () => Date.now(),
      applied: () => {},
      fenced: () => {},
    },
    () => event,
  );
  return timed(sessions, () => writer.record([event]));
}

/** What the broker gives: messages of `events` events, one at a time. */
async function floorCell({ url, user, password, run }: Room, events: number): Promise<Cell> {
  const connection = await connect({
    servers: url,
    user,
    pass: password,
    noAsyncTraces: true,
    inboxPrefix: `_INBOX_${user}`,
  });
  const js = jetstream(connection, {});
  const subject = `hp.${run}.log.agent.floor${events}.0`;
  const body = JSON.stringify({ schema: 1, incarnation: "floor", events: Array.from({ length: events }, () => event) });
  let sequence = 0;
  let id = 0;
  const cell = await timed(1, async () => {
    id += 1;
    const expect = { lastSubjectSequence: sequence };
    sequence = (await js.publish(subject, body, { msgID: `floor-${events}-${id}`, expect })).seq;
  });
  await connection.close();
  return { ...cell, perSecond: cell.perSecond * events };
}

async function timed(loops: number, once: () => Promise<unknown>): Promise<Cell> {
  const samples: number[] = [];
  const start = performance.now();
  const end = start + spanMs;
  const loop = async () => {
    while (performance.now() < end) {
      const from = performance.now();
      await once();
      samples.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: loops }, loop));
  return { perSecond: (samples.length / (performance.now() - start)) * 1000, latencyMs: figuresOf(samples) };
}

/** `processes` processes of `sessions` loops each, all at once. */
async function processesCell(room: Room, processes: number, sessions: number): Promise<Cell> {
  const cells = await Promise.all(Array.from({ length: processes }, (_, at) => child(room, `p${at}`, sessions)));
  const perSecond = cells.reduce((sum, cell) => sum + cell.perSecond, 0);
  const p99 = Math.max(...cells.map(({ latencyMs }) => latencyMs.p99));
  return { perSecond, latencyMs: { ...figuresOf(cells.map(({ latencyMs }) => latencyMs.p50)), p99 } };
}

function child({ url, user, password, run }: Room, instance: string, sessions: number): Promise<Cell> {
  const env = { ...process.env, BENCH_URL: url, BENCH_USER: user, BENCH_PASSWORD: password, BENCH_RUN: run };
  return new Promise((resolve, reject) => {
    const writer = fork(new URL("append-process.ts", import.meta.url), [instance, String(sessions)], { env });
    writer.once("message", (cell: Cell) => resolve(cell));
    writer.once("error", reject);
    writer.once("exit", (code) => code !== 0 && reject(new Error(`a writer process ended with ${code}`)));
  });
}

export async function measureAppend(): Promise<string> {
  const rows: string[][] = [];
  for (const sessions of [1, 10, 100, 1_000]) {
    const [ours, floor] = await inRoom(async (room) => [
      await writerCell(room, sessions, `w${sessions}`),
      await floorCell(room, sessions),
    ]);
    rows.push(row(`${sessions} in one process`, ours, floor));
  }
  const [ours, floor] = await inRoom(async (room) => [await processesCell(room, 16, 625), await floorCell(room, 625)]);
  rows.push(row("625 in each of 16 processes", ours, floor));
  const head = [
    "sessions",
    "events/s",
    "p50 ms",
    "p99 ms",
    "floor events/s",
    "floor p50 ms",
    "floor p99 ms",
    "floor ÷ ours",
  ];
  return table(head, rows);
}

function row(name: string, ours: Cell | undefined, floor: Cell | undefined): string[] {
  if (ours === undefined || floor === undefined) return [name];
  const cells = [ours, floor].flatMap(({ perSecond, latencyMs }) =>
    [perSecond, latencyMs.p50, latencyMs.p99].map(show),
  );
  return [name, ...cells, show(floor.perSecond / ours.perSecond)];
}
