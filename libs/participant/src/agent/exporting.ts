/** At a capture: what sessions can be continued with is asked for, and goes into the log. Nothing else ever asks for it. */
import { HoldpointError } from "@holdpoint/errors";
import { Json } from "@holdpoint/schemas";
import { contained, isBelieved, type Piece } from "../author-code.ts";
import type { Contents } from "../contents.ts";
import type { Activation } from "./activation.ts";
import type { AgentLogEvent } from "./agent-state.ts";
import { untilAborted } from "./until-aborted.ts";

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
  const { turn, index } = boundary;
  const { rollout, attempt } = episode;
  const about = { role: "agent", hook: "boundary", rollout, attempt } as const;
  const piece = { title: `the boundary of ${rollout}, attempt ${attempt},`, about, signal, trouble };
  try {
    const value = Json.parse(
      await untilAborted(
        contained(piece, async () => boundary.evaluate()),
        signal,
      ),
    );
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
    const words = `${what}: the log of its process says why; expected JSON from the function given to boundary()`;
    throw new HoldpointError("invalid_checkpoint_state", words, { cause, details: { rollout, attempt } });
  }
}
