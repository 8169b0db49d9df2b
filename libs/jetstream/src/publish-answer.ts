/** What the stream answers to a message. */
import { parseJson } from "@holdpoint/eventsourcing";
import { HoldpointError } from "@holdpoint/errors";
import * as z from "zod";
import { type ApiFailure, refusal } from "./failure.ts";

export type Answer =
  | { readonly type: "stored"; readonly sequence: number }
  /** An expectation does not hold, maybe because of the message itself. */
  | { readonly type: "moved" }
  /** Not known to be stored, and to be tried again; `refused`: the server said that it could not. */
  | { readonly type: "again"; readonly why: string; readonly refused: boolean };

const PublishAnswer = z.union([
  z.object({ error: z.object({ code: z.int(), err_code: z.int().default(0), description: z.string().default("") }) }),
  z.object({ stream: z.string(), seq: z.int().positive() }),
]);

const wrongLastSequence = 10071;
/** Another message on the expected subject is on its way through the replicas. */
const wrongLastInFlight = 10164;
/** A message of the batch is stored already. */
const duplicateInBatch = 10201;
/** The server has given the batch up, or messages of it were lost with a connection. */
const incompleteBatch = 10176;

const moved: ReadonlySet<number> = new Set([wrongLastSequence, duplicateInBatch]);
const again: ReadonlySet<number> = new Set([wrongLastInFlight, incompleteBatch]);

/**
 * @returns `undefined` where the message is taken as one of a batch that is not committed yet
 * @throws HoldpointError where the message can never be stored, such as one that is too large
 */
export function readAnswer(data: Uint8Array, stream: string, doing: string): Answer | undefined {
  if (data.length === 0) return undefined;
  const json = parseJson(data);
  const parsed = PublishAnswer.safeParse(json.ok ? json.value : undefined);
  if (!parsed.success) {
    const text = `not an answer of a stream; does somebody else listen on its subjects? (${z.prettifyError(parsed.error)})`;
    throw new HoldpointError("unavailable", `${doing}: ${text}`);
  }
  if ("error" in parsed.data) return readError(parsed.data.error, doing);
  if (parsed.data.stream === stream) return { type: "stored", sequence: parsed.data.seq };
  throw new HoldpointError(
    "invalid_checkpoint_state",
    `${doing}: the stream ${parsed.data.stream} has taken it, not ${stream}`,
  );
}

function readError(error: ApiFailure, doing: string): Answer {
  if (moved.has(error.err_code)) return { type: "moved" };
  if (again.has(error.err_code)) return { type: "again", why: error.description, refused: false };
  const refused = refusal(error, doing);
  if (refused.code !== "unavailable") throw refused;
  return { type: "again", why: refused.message, refused: true };
}
