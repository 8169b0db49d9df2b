/** At a capture: what sessions can be continued with is asked for, and goes into the log. Nothing else ever asks for it. */
import { HoldpointError } from "@holdpoint/errors";
import { type Episode, Json } from "@holdpoint/schemas";
import { contained, isBelieved, type Piece } from "../author-code.ts";
import type { Contents } from "../contents.ts";
import type { Activation } from "./activation.ts";
import type { AgentLogEvent } from "./agent-state.ts";
import { foundIn } from "./given.ts";
import { untilAborted } from "../until-aborted.ts";
import type { Boundary } from "./work.ts";

export interface Exporting {
  readonly checkpointId: string;
  readonly contents: Contents;
  readonly signal: AbortSignal;
  /** Told what a boundary threw: the reply does not say. */
  readonly trouble: Piece["trouble"];
}

/** How many are asked at a time. */
const width = 16;

/**
 * The boundaries that the log does not have yet.
 *
 * @throws HoldpointError `invalid_checkpoint_state` where one cannot be had, naming the session
 */
export async function exportBoundaries(
  activations: readonly Activation[],
  exporting: Exporting,
): Promise<readonly AgentLogEvent[]> {
  const events: AgentLogEvent[] = [];
  const left = activations.values();
  const worker = async () => {
    for (const activation of left) {
      exporting.signal.throwIfAborted();
      const event = await exported(activation, exporting);
      if (event !== undefined) events.push(event);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
  return events;
}

async function exported(
  { episode, work }: Activation,
  { checkpointId, contents, signal, trouble }: Exporting,
): Promise<AgentLogEvent | undefined> {
  const boundary = work?.boundaryToExport;
  if (boundary === undefined) return undefined;
  const { turn, index, hook } = boundary;
  const { rollout, attempt } = episode;
  const about = { role: "agent", hook, rollout, attempt } as const;
  const piece = { title: `the ${hook} of ${rollout}, attempt ${attempt},`, about, signal, trouble };
  try {
    const given = await untilAborted(
      contained(piece, async () => boundary.evaluate()),
      signal,
    );
    const value = jsonOf(given, boundary, episode);
    boundary.exported = await contents.write(JSON.stringify(value));
    return {
      type: "boundary.exported",
      data: { ...episode, checkpointId, turn, index, boundary: boundary.exported },
    };
  } catch (cause) {
    signal.throwIfAborted();
    if (isBelieved(cause)) throw cause;
    const what = `what ${rollout}, attempt ${attempt}, can be continued with was not given`;
    trouble(what, cause, about);
    const words = `${what}: the log of its process says why; expected JSON from ${giver[hook]}`;
    throw new HoldpointError("invalid_checkpoint_state", words, { cause, details: { rollout, attempt } });
  }
}

const giver = {
  boundary: "the function given to boundary()",
  state: "state() of its harness",
} as const;

/** @throws HoldpointError `invalid_checkpoint_state` that names the session and who gave `given`, where it is no JSON */
function jsonOf(given: unknown, { hook }: Boundary, { rollout, attempt }: Episode): Json {
  const parsed = Json.safeParse(given);
  if (parsed.success) return parsed.data;
  const words = `what ${rollout}, attempt ${attempt}, can be continued with is no JSON: ${giver[hook]} gave ${foundIn(given)}`;
  const advice = "expected null, booleans, finite numbers, texts, and arrays and plain objects of these";
  throw new HoldpointError("invalid_checkpoint_state", `${words}; ${advice}`, { details: { rollout, attempt } });
}
