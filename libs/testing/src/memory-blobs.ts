import type { BlobStore } from "@holdpoint/eventsourcing";
import { digest } from "./simulated-process.ts";

/** Blobs by digest, in memory. */
export class MemoryBlobs implements BlobStore {
  readonly #texts = new Map<string, string>();

  async put(text: string): Promise<string> {
    this.#texts.set(digest(text), text);
    return digest(text);
  }

  async get(key: string): Promise<string> {
    return this.#texts.get(key) ?? "";
  }

  async has(key: string): Promise<boolean> {
    return this.#texts.has(key);
  }
}
