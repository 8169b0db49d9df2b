/** Texts to and from events: small ones rest in the event, large ones in the blobs, all known by their digest. */
import { HoldpointError } from "@holdpoint/errors";
import type { BlobStore } from "@holdpoint/eventsourcing";
import { type Content, inlineLimitBytes } from "@holdpoint/schemas";
import { sha256 } from "./hash.ts";

export class Contents {
  readonly #blobs: BlobStore;

  constructor(blobs: BlobStore) {
    this.#blobs = blobs;
  }

  /** What an event carries for `text`; returns once a large one is durable. */
  async write(text: string): Promise<Content> {
    const bytes = Buffer.byteLength(text);
    const digest = sha256(text);
    if (bytes <= inlineLimitBytes) return { digest, bytes, text };
    await this.#blobs.put(text);
    return { digest, bytes };
  }

  /** @throws HoldpointError `invalid_checkpoint_state` where the text is missing or is not what its digest says */
  async read({ digest, text }: Content): Promise<string> {
    const found = text ?? (await this.#blobs.get(digest));
    if (sha256(found) === digest) return found;
    throw new HoldpointError("invalid_checkpoint_state", `the text of ${digest} is damaged`, { details: { digest } });
  }
}
