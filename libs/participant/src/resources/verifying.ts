/** The verdict: judged once, and answered from the log from then on. */
import type { Content, Episode } from "@holdpoint/schemas";
import { type Desk, type Given, namedSession, sessionIn } from "./desk.ts";

/**
 * Judges what the session has come to, unless that was done before.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where the session was lost, `stale_attempt` where it ends meanwhile; and what
 *   `verify.run` refused with
 */
export async function verify(desk: Desk, { rollout, attempt }: Episode, output: Content | undefined): Promise<Content> {
  const episode = { rollout, attempt };
  const known = desk.participant.sessions.get(episode)?.state.verdict ?? null;
  if (known !== null) return known;
  const bench = desk.benches.of(episode);
  const { content } = await bench.join("verify", () =>
    bench.run((signal) => judged(desk, { episode, output }, signal)),
  );
  return content;
}

interface Court {
  readonly episode: Episode;
  readonly output: Content | undefined;
}

async function judged(desk: Desk, { episode, output }: Court, signal: AbortSignal): Promise<Given> {
  const { participant, resources, newId } = desk;
  const session = sessionIn(desk, episode);
  const { state, seed } = session.state;
  const found = await resources.verify({
    state,
    seed: JSON.parse(await participant.contents.read(seed)),
    output: output === undefined ? undefined : await participant.contents.read(output),
    session: namedSession(session),
    signal,
  });
  signal.throwIfAborted();
  const content = await participant.contents.write(JSON.stringify(found));
  const execution = newId("verify", episode);
  await participant.record({ type: "verify.finished", data: { ...episode, execution, verdict: content } });
  return { content, isError: false };
}
