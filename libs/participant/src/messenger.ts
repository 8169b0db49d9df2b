/** What of a connection the SDK needs to ask and to answer. `@holdpoint/jetstream`'s connection is one. */
export interface Messenger {
  /** @throws HoldpointError `unavailable` where nobody answers in time */
  request(
    subject: string,
    body: string,
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<Uint8Array>;

  subscribe(subject: string, handle: (request: IncomingRequest) => void): Promise<{ stop(): void }>;
}

export interface IncomingRequest {
  readonly subject: string;
  readonly data: Uint8Array;
  respond(body: string): void;
}
