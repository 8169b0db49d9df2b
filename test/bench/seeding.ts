/**
 * How long a checkpoint holds 100 sessions that stand at boundaries, with 500 first seeds in flight at the agent and as many at the
 * resources server, each slower than the measurement, and without: in turns, in one run, by the stream's own timestamps.
 */
import { Controller } from "@holdpoint/client";
import { seedSubject } from "@holdpoint/schemas";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { method } from "@holdpoint/participant";
import { figuresOf, show, table } from "./figures.ts";
import { timesOf } from "./held-times.ts";
import { inRoom, type Room, withCoordinator } from "./room.ts";
import { enter, episodesOf, type Standing } from "./standing.ts";

const sessions = 100;
const seeds = 500;
const rounds = 9;
const seeded = ["agent", "resources"] as const;

/** First seeds that go on until they are let end. */
class SlowSeeds {
  readonly #over = Promise.withResolvers<void>();
  readonly #run: string;
  #begun = 0;

  constructor(run: string) {
    this.#run = run;
  }

  readonly methods = {
    seed: method({
      body: z.looseObject({}),
      whileClosed: "held",
      seeds: true,
      blocks: "seed in flight",
      handle: async () => {
        this.#begun += 1;
        await this.#over.promise;
        throw new Error("the seed was only measured");
      },
    }),
  };

  /** Returns once all are in flight. */
  async begin(room: Room): Promise<void> {
    const connection = await room.connectAs("environment");
    for (const role of seeded) {
      for (let at = 0; at < seeds; at++) {
        const body = JSON.stringify({ rollout: `slow-${at}`, attempt: 0 });
        const asked = connection.request(seedSubject(this.#run, role, "main"), body, { timeoutMs: 600_000 });
        void asked.catch(() => {}); // answered when the measurement is over
      }
    }
    while (this.#begun < seeds * seeded.length) await delay(5);
  }

  end(): void {
    this.#over.resolve();
  }
}

async function holdMs(room: Room, checkpointId: string): Promise<number> {
  const outcome = await new Controller(room).command({ operation: "checkpoint", checkpointId, timeoutMs: 60_000 });
  return (await timesOf(room, outcome)).holdMs;
}

/** Checkpoints in one run, with the slow seeds from the middle on. */
async function measure(room: Room, withSeeds: boolean): Promise<readonly number[]> {
  const slow = new SlowSeeds(room.run);
  const episodes = episodesOf(sessions);
  const participants: Standing[] = [];
  for (const role of ["environment", "model", "agent", "resources"] as const) {
    participants.push(await enter(room, role, episodes, { methods: slow.methods }));
  }
  await holdMs(room, "first");
  if (withSeeds) await slow.begin(room);
  const times: number[] = [];
  for (let at = 0; at < rounds; at++) times.push(await holdMs(room, `c${at}`));
  slow.end();
  await Promise.all(participants.map((participant) => participant.stop()));
  return times;
}

export async function measureSeeding(): Promise<string> {
  const rows: string[][] = [];
  for (const withSeeds of [false, true, false, true]) {
    const times = await inRoom((room) => withCoordinator(room, () => measure(room, withSeeds)));
    const { p50, min, max } = figuresOf(times);
    rows.push([withSeeds ? `${seeds} at each of two servers` : "none", ...[p50, min, max].map(show)]);
  }
  return table(["slow first seeds in flight", "hold ms, median", "least", "most"], rows);
}
