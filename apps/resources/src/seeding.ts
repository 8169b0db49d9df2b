/** The seed of a session: sets up its sandbox once, and answers every repetition from what there is. */
import { HoldpointError } from "@holdpoint/errors";
import { canonicalJson, refuseBeside } from "@holdpoint/participant";
import { breakSource } from "@holdpoint/repair";
import type { Content, Episode, SeedReply, SeedRequest, SeedTerms } from "@holdpoint/schemas";
import type { Session } from "@holdpoint/session";
import * as z from "zod";
import { installedPackage, shippedSource } from "./installed-package.ts";
import type { RepairSession } from "./repair-session.ts";
import { atBench, newId, RepairSeed, type Workshop } from "./workshop.ts";

/** Verify works on a copy, so that it can be done again. */
const terms: SeedTerms = { verify: "replay", sandboxLent: true, rebinds: false, grantsBound: false };

/**
 * Answers a seed: sets the session up, or, where there is one of the same seed, claims it as it is.
 *
 * @throws HoldpointError `invalid_request` for a seed that is no task of ours, `session_conflict` where the session has another
 *   one or another attempt of the rollout is live, `stale_attempt` where it was retired meanwhile
 */
export async function seed(workshop: Workshop, episode: Episode, request: SeedRequest): Promise<SeedReply> {
  const parsed = RepairSeed.safeParse(request.seed);
  if (!parsed.success) {
    throw new HoldpointError("invalid_request", `expected a seed of { task, … }: ${z.prettifyError(parsed.error)}`);
  }
  const content = await workshop.participant.contents.write(canonicalJson(request.seed));
  const named = { sessionId: request.sessionId, seed: content };
  const seeded = async (signal: AbortSignal): Promise<SeedReply> => {
    const known = workshop.participant.sessions.get(episode);
    if (known !== undefined) return again(workshop, known, named);
    refuseBeside(workshop.participant, episode);
    return setUp(workshop, { ...named, episode, task: parsed.data.task }, signal);
  };
  return atBench(workshop, episode, (bench) => bench.run(seeded));
}

interface Named {
  readonly sessionId: string;
  readonly seed: Content;
}

interface Order extends Named {
  readonly episode: Episode;
  readonly task: z.infer<typeof RepairSeed>["task"];
}

async function setUp(workshop: Workshop, order: Order, signal: AbortSignal): Promise<SeedReply> {
  const { episode, sessionId, seed: content, task } = order;
  const target = installedPackage(task.package);
  const broken = breakSource(task, await shippedSource(target, task));
  const sandbox = newId("box", episode);
  try {
    await workshop.provider.create(sandbox, target.home);
    await workshop.provider.writeFile(sandbox, task.file, broken);
    signal.throwIfAborted();
    await workshop.participant.record({
      type: "session.seeded",
      data: { ...episode, sessionId, seed: content, sandbox },
    });
  } catch (error) {
    // Where the broker did not say whether it stored the event, the sandbox may be lent; if not, the next start finds it.
    if (!HoldpointError.is(error, "unavailable")) await workshop.provider.delete(sandbox);
    throw error;
  }
  return { terms, restart: null };
}

/** Runs no setup; a restored session is claimed by it. */
async function again(
  { participant }: Workshop,
  { rollout, attempt, state, claimed }: Session<RepairSession>,
  { sessionId, seed: content }: Named,
): Promise<SeedReply> {
  if (state.sessionId !== sessionId || state.seed.digest !== content.digest) {
    throw new HoldpointError("session_conflict", `${rollout} was seeded with another seed: seed it with the same one`, {
      details: { rollout, attempt, sessionId: state.sessionId },
    });
  }
  if (!claimed) {
    const { sandbox, seed: seeded } = state;
    await participant.record({ type: "session.seeded", data: { rollout, attempt, sessionId, seed: seeded, sandbox } });
  }
  return { terms, restart: state.lost };
}
