/** The end of sessions: closed by their environment, or retired by the control plane. What runs is stopped, then freed. */
import type { Episode } from "@holdpoint/schemas";
import { eachBounded } from "./bounded.ts";
import type { Desk } from "./desk.ts";
import { namedSession } from "./desk.ts";
import type { Externals } from "./externals.ts";
import { sessionOver } from "../live-sessions.ts";

/** Sessions that are freed at once. */
const lanes = 16;

/** Ends a session in order; what was captured of it stays. Again is no error. */
export async function close(desk: Desk, externals: Externals, { rollout, attempt }: Episode): Promise<void> {
  const { participant, benches } = desk;
  const episode = { rollout, attempt };
  const bench = benches.of(episode);
  await bench.stop(sessionOver(episode));
  const session = participant.sessions.get(episode);
  if (session === undefined) return benches.drop(episode, bench);
  try {
    await participant.record({ type: "session.closed", data: episode });
  } finally {
    benches.drop(episode, bench); // where it could not be recorded, the session goes on
  }
  await externals.free(namedSession(session));
}

/** Stops the work of these attempts and all before them, waits for it, and frees what they stand on. */
export async function retire(desk: Desk, externals: Externals, marks: readonly Episode[]): Promise<void> {
  const { participant, benches } = desk;
  const stopped = benches.upTo(marks);
  await Promise.all(stopped.map(({ episode, bench }) => bench.stop(sessionOver(episode))));
  const highest = new Map(marks.map(({ rollout, attempt }) => [rollout, attempt]));
  const isMarked = ({ rollout, attempt }: Episode) => attempt <= (highest.get(rollout) ?? -1);
  const marked = participant.sessions.all().filter(isMarked);
  await eachBounded(marked, lanes, (session) => externals.free(namedSession(session)));
  for (const { episode, bench } of stopped) benches.drop(episode, bench);
}
