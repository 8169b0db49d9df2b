/** How sessions reach their tools. In memory alone: a process that has lost it asks the resources server for it anew. */
import { type Access, type Episode, GrantReply } from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";
import type { RpcClient } from "../rpc-client.ts";

export class AccessBook {
  readonly #calls: RpcClient;
  readonly #resources: string;
  readonly #held = new Map<string, Access>();

  /** @param resources the instance of the resources server that grants it */
  constructor(calls: RpcClient, resources: string) {
    this.#calls = calls;
    this.#resources = resources;
  }

  of(episode: Episode): Access | undefined {
    return this.#held.get(keyOf(episode));
  }

  keep(episode: Episode, access: Access | undefined): void {
    if (access !== undefined) this.#held.set(keyOf(episode), access);
  }

  drop(episode: Episode): void {
    this.#held.delete(keyOf(episode));
  }

  /** @throws HoldpointError with the resources server's code, where it grants none */
  async renew(episode: Episode, signal: AbortSignal): Promise<Access> {
    const { access } = await this.#calls.call({
      episode,
      role: "resources",
      instance: this.#resources,
      method: "grant",
      body: {},
      reply: GrantReply,
      signal,
    });
    this.keep(episode, access);
    return access;
  }
}
