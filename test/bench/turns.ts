/** What a turn costs, a model call and a tool call, early and late in an episode of 10,000 turns whose requests have the same size. */
import { type AgentSession, defineAgent } from "@holdpoint/participant";
import * as z from "zod";
import { withAgent } from "./agent-room.ts";
import { median, show, table } from "./figures.ts";
import { inRoom } from "./room.ts";

const turns = 10_000;
const window = 500;

/** The tool does nothing: what is measured is around it. */
const work = () => {};

interface Turn {
  readonly ms: number;
  readonly bytes: number;
}

export async function measureTurns(): Promise<string> {
  const taken: Turn[] = [];
  let weighed: { readonly bytes: number } = { bytes: 0 };
  const activate = async (session: AgentSession<unknown>) => {
    for (let turn = 0; turn < turns; turn++) {
      const [since, bytes] = [performance.now(), weighed.bytes];
      await session.model({ model: "bench", messages: [{ role: "user", content: "go on" }] });
      await session.tool("work", "{}");
      taken.push({ ms: performance.now() - since, bytes: weighed.bytes - bytes });
    }
    return "done";
  };
  const definition = defineAgent({ name: "bench", mode: "exported", seed: z.unknown(), activate });
  const heap = await inRoom((room) =>
    withAgent(room, { definition, work }, async ({ appends, run }) => {
      weighed = appends;
      await run({ rollout: "r", attempt: 0 });
      return process.memoryUsage().heapUsed;
    }),
  );
  const rows = [0, turns / 10, turns / 2, turns - window].map((from) => {
    const some = taken.slice(from, from + window);
    return [
      `${show(from)} to ${show(from + window - 1)}`,
      ...[median(some.map(({ ms }) => ms)), median(some.map(({ bytes }) => bytes))].map(show),
    ];
  });
  return `${table(["turns", "ms a turn, median", "bytes a turn, median"], rows)}\n\nheap at the end: ${show(heap / 2 ** 20)} MB`;
}
