/** The verdict: judged once, and answered from the log from then on. */
import type { Content, Episode } from "@holdpoint/schemas";
import { hooked } from "./author-hook.ts";
import { atBench, type Desk, type Given, namedSession, soundSessionIn } from "./desk.ts";

/**
 * Judges what the session has come to, unless that was done before.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where the session was lost, `stale_attempt` where it ends meanwhile, `invalid_request`
 *   where `verify.run` threw; and what it refused with
 */
export async function verify(desk: Desk, { rollout, attempt }: Episode, output: Content | undefined): Promise<Content> {
  const episode = { rollout, attempt };
  const known = desk.participant.sessions.get(episode)?.state.verdict ?? null;
  if (known !== null) return known;
  const { content } = await atBench(desk, episode, (bench) =>
    bench.join("verify", () => bench.run((signal) => judged(desk, { episode, output }, signal))),
  );
  return content;
}

interface Court {
  readonly episode: Episode;
  readonly output: Content | undefined;
}

async function judged(desk: Desk, { episode, output }: Court, signal: AbortSignal): Promise<Given> {
  const { participant, resources, newId } = desk;
  const session = await soundSessionIn(desk, episode);
  const { state, seed } = session.state;
  const seeded: unknown = JSON.parse(await participant.contents.read(seed));
  const asked = {
    state,
    seed: seeded,
    output: output === undefined ? undefined : await participant.contents.read(output),
    session: namedSession(session),
  };
  const found = await hooked(desk, { name: "verify.run", code: "invalid_request", signal, episode }, (over) =>
    resources.verify({ ...asked, signal: over }),
  );
  signal.throwIfAborted();
  const content = await participant.contents.write(JSON.stringify(found));
  const execution = newId("verify", episode);
  await participant.record({ type: "verify.finished", data: { ...episode, execution, verdict: content } });
  return { content, isError: false };
}
