/**
 * How many activations of this process run at once: who comes first is served first.
 *
 * 1. A ticket is in the line, holds a slot, or is over. It is given back once, whatever happens to its owner.
 * 2. Who had a slot when the process before this one died goes before all others, and may have it beyond the limit: then nobody else
 *    gets one until as many are given back.
 */
export class Slots {
  #free: number;
  readonly #first = new Set<Ticket>();
  readonly #line = new Set<Ticket>();

  /** @param limit at least 1; absent: no limit */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#free = limit;
  }

  /** Slots that nobody holds; negative while some are held beyond the limit. */
  get free(): number {
    return this.#free;
  }

  /** Takes a place in the line, or a slot where one is free. */
  join({ first }: { readonly first: boolean }): Ticket {
    const line = first ? this.#first : this.#line;
    const ticket = new Ticket({
      taken: () => {
        line.delete(ticket);
        this.#free -= 1;
      },
      left: (held) => {
        line.delete(ticket);
        if (held) this.#free += 1;
        this.#serve();
      },
    });
    line.add(ticket);
    this.#serve();
    return ticket;
  }

  #serve(): void {
    for (const line of [this.#first, this.#line]) {
      for (const ticket of line) {
        if (this.#free < 1) return;
        ticket.grant();
      }
    }
  }
}

/** A place in the line, then a slot. */
export class Ticket {
  /** Resolves when it has its slot; never, where it is given back before. */
  readonly granted: Promise<void>;
  readonly #grant: () => void;
  readonly #line: { readonly taken: () => void; readonly left: (held: boolean) => void };
  #status: "queued" | "held" | "over" = "queued";

  constructor(line: { readonly taken: () => void; readonly left: (held: boolean) => void }) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.granted = promise;
    this.#grant = resolve;
    this.#line = line;
  }

  get isHeld(): boolean {
    return this.#status === "held";
  }

  /** Gives it its slot, whether one is free or not. */
  grant(): void {
    if (this.#status !== "queued") return;
    this.#status = "held";
    this.#line.taken();
    this.#grant();
  }

  /** Leaves the line, or gives the slot to who comes next. */
  giveBack(): void {
    if (this.#status === "over") return;
    const { isHeld } = this;
    this.#status = "over";
    this.#line.left(isHeld);
  }
}
