/** Text that an event carries: in it while it is small, beside it as a blob when it is not. */
import * as z from "zod";
import { Digest } from "./ids.ts";

/** Bytes of UTF-8 up to which a text rests in its event; above, the event names a blob. */
export const inlineLimitBytes = 16_384;

/** `text` is absent where the text rests in the run's blobs under `digest`. The reader checks the digest either way. */
export const Content = z.object({ digest: Digest, bytes: z.int().nonnegative(), text: z.string().optional() });
export type Content = z.infer<typeof Content>;

/** Any JSON value: what a workload passes on, and Holdpoint does not look into. */
export const Json = z.json();
export type Json = z.infer<typeof Json>;
