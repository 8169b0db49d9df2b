/** Core messaging within one process, for tests of participants without a broker. */

/** A request as its subscriber gets it. */
export interface MemoryRequest {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly respond: (body: string) => void;
}

type Handler = (request: MemoryRequest) => void;

/** A request goes to everybody who listens; one that nobody answers waits until its signal is aborted, else for ever. */
export class MemoryMessenger {
  readonly #handlers = new Map<Handler, string>();

  request(subject: string, body: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      const data = new TextEncoder().encode(body);
      const respond = (reply: string) => resolve(new TextEncoder().encode(reply));
      for (const [handle, filter] of this.#handlers) {
        if (matches(subject, filter)) handle({ subject, data, respond });
      }
    });
  }

  async subscribe(subject: string, handle: Handler): Promise<{ stop(): void }> {
    const own: Handler = (request) => handle(request);
    this.#handlers.set(own, subject);
    return { stop: () => void this.#handlers.delete(own) };
  }
}

function matches(subject: string, filter: string): boolean {
  const tokens = filter.split(".");
  const parts = subject.split(".");
  return tokens.length === parts.length && tokens.every((token, at) => token === "*" || token === parts[at]);
}
