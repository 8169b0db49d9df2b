/**
 * The slot of one activation.
 *
 * Who waits for one stands at a boundary: it parks while a checkpoint is open, and one that gets its slot then starts nothing before
 * the checkpoint lets it go on. A restart does not park. Whatever ends the wait, the slot goes back.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Episode } from "@holdpoint/schemas";
import { isCapturable } from "../preparing.ts";
import type { AgentParticipant } from "./agent-state.ts";
import type { Slots, Ticket } from "./slots.ts";

/** Held until it is disposed of: `await using slot = await session.slot()`. */
export interface Slot extends AsyncDisposable {
  /** Gives it back before. Harmless when it was. */
  release(): void;
}

export interface SlotKeeperOptions {
  readonly agent: AgentParticipant;
  readonly episode: Episode;
  readonly slots: Slots;
  readonly signal: AbortSignal;
}

interface Held {
  /** undefined: lent, while what the log has is answered from the log. */
  ticket: Ticket | undefined;
}

interface Doubt {
  readonly isInDoubt: boolean;
}

export class SlotKeeper {
  readonly #options: SlotKeeperOptions;
  #held: Held | undefined;
  /** The latest: in the line, or held. */
  #ticket: Ticket | undefined;

  constructor(options: SlotKeeperOptions) {
    this.#options = options;
  }

  /** A slot for as long as nothing is really done: it is settled by whoever begins to. */
  lend(): Slot {
    return this.#own({ ticket: undefined });
  }

  /** @throws HoldpointError `invalid_request` where the activation has one */
  async take(doubt: Doubt): Promise<Slot> {
    this.#refuseSecond();
    return this.#own({ ticket: await this.#queue(doubt) });
  }

  /** Gets a slot for what was lent and is still held. */
  async settle(doubt: Doubt): Promise<void> {
    const held = this.#held;
    if (held === undefined || held.ticket !== undefined) return;
    const ticket = await this.#queue(doubt);
    if (this.#held === held) held.ticket = ticket;
    else ticket.giveBack(); // released while it was queued for
  }

  /** Gives back what is held. */
  close(): void {
    this.#ticket?.giveBack();
    this.#held = undefined;
  }

  #own(held: Held): Slot {
    this.#refuseSecond();
    this.#held = held;
    const release = () => {
      held.ticket?.giveBack();
      if (this.#held === held) this.#held = undefined;
    };
    return { release, [Symbol.asyncDispose]: async () => release() };
  }

  #refuseSecond(): void {
    if (this.#held === undefined) return;
    throw new HoldpointError("invalid_request", "the activation has its slot: give it back before it takes another");
  }

  async #queue({ isInDoubt }: Doubt): Promise<Ticket> {
    const ticket = this.#options.slots.join({ first: isInDoubt });
    this.#ticket = ticket;
    try {
      await (isInDoubt ? this.#granted(ticket) : this.#parking(ticket));
      return ticket;
    } catch (error) {
      ticket.giveBack();
      throw error;
    }
  }

  /** A checkpoint waits until it is known what has become of the step in doubt: nothing that it holds up may be waited for. */
  async #granted(ticket: Ticket): Promise<void> {
    await this.#either(ticket, () => this.#options.agent.admission.isClosed);
    ticket.grant();
  }

  async #parking(ticket: Ticket): Promise<void> {
    const { agent, episode, signal } = this.#options;
    for (;;) {
      await agent.boundary(episode, signal);
      if (ticket.isHeld) return;
      await this.#either(ticket, () => this.#mustPark());
    }
  }

  /** Returns when it has its slot or when `holds`. @throws the signal's reason */
  async #either(ticket: Ticket, holds: () => boolean): Promise<void> {
    const { agent, signal } = this.#options;
    const granted = new AbortController();
    const either = AbortSignal.any([granted.signal, signal]);
    void ticket.granted.then(() => granted.abort());
    try {
      await agent.admission.gateLatch.until(() => ticket.isHeld || holds(), either);
    } catch (error) {
      if (!granted.signal.aborted || signal.aborted) throw error;
    }
  }

  #mustPark(): boolean {
    const { agent, episode } = this.#options;
    const session = agent.sessions.get(episode);
    return agent.admission.isClosed && session !== undefined && isCapturable(agent, session);
  }
}
