/** An agent whose seeds and calls wait until a test lets them through. */
import { type AnyMethod, method, type RoleHooks } from "@holdpoint/participant";
import { type AgentEvent, type Episode, rpcSubject, seedSubject } from "@holdpoint/schemas";
import { expect } from "vitest";
import * as z from "zod";
import { type Agent, type Counter, received, Room, seeded, turns } from "./room.ts";

/** Seeds and calls that wait until they are let through, one gate for each kind. */
export class Desk {
  readonly room = new Room();
  readonly seeding = Promise.withResolvers<void>();
  readonly calling = Promise.withResolvers<void>();
  /** What its seeds free when they come to nothing. */
  readonly freed: string[] = [];
  readonly #seeding = new Map<string, Promise<object>>();
  agent: Agent | undefined;

  async open(hooks: RoleHooks<Counter, AgentEvent> = {}): Promise<Agent> {
    const agent = await this.room.open();
    await agent.serve({ methods: this.#methods(agent), hooks });
    await this.room.join(agent.options.worker, agent.options.incarnation);
    await turns();
    this.agent = agent;
    return agent;
  }

  #methods(agent: Agent): Readonly<Record<string, AnyMethod>> {
    const body = z.looseObject({});
    return {
      seed: method({
        body,
        whileClosed: "held",
        seeds: true,
        blocks: "seed in flight",
        handle: (episode) => this.#seed(agent, episode),
      }),
      tool: method({
        body: z.strictObject({ to: z.string(), name: z.string() }),
        whileClosed: "held",
        blocks: "tool call in flight",
        handle: async (episode) => {
          await this.calling.promise;
          await agent.record(received(episode, 0));
          return { done: true };
        },
      }),
      start: method({ body, whileClosed: "refused", handle: async () => ({}) }),
      close: method({ body, whileClosed: "through", ends: true, handle: (episode) => this.#close(agent, episode) }),
    };
  }

  async #close(agent: Agent, episode: Episode): Promise<object> {
    const seeding = this.#seeding.get(episode.rollout);
    await seeding?.catch(() => {});
    if (agent.sessions.get(episode) !== undefined) await agent.record({ type: "session.closed", data: episode });
    return { awaited: seeding !== undefined };
  }

  #seed(agent: Agent, episode: Episode): Promise<object> {
    const seeding = this.#seeded(agent, episode);
    this.#seeding.set(episode.rollout, seeding);
    return seeding;
  }

  async #seeded(agent: Agent, episode: Episode): Promise<object> {
    await this.seeding.promise;
    try {
      await agent.record(seeded(episode));
    } catch (error) {
      this.freed.push(episode.rollout);
      throw error;
    }
    return { seeded: true };
  }

  seed(episode: Episode): Promise<unknown> {
    return this.room.request(seedSubject("room", "agent", "main"), episode);
  }

  call(name: string, episode: Episode, body: object = { to: "main" }): Promise<unknown> {
    return this.room.request(rpcSubject("room", episode, "agent", name), body);
  }
}

export function refusal(code: string) {
  return { ok: false, problem: { code, message: expect.any(String) } };
}
