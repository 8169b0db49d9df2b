/** A counter whose parts a test can replace, and external state of which a test sees all that is done with it. */
import { HoldpointError } from "@holdpoint/errors";
import {
  defineResources,
  type ExternalState,
  type Resources,
  type ResourcesDefinition,
  type SessionName,
  type ToolOutcome,
  type Unneeded,
} from "@holdpoint/participant";
import type { Json } from "@holdpoint/schemas";
import * as z from "zod";

interface Count {
  readonly count: number;
  readonly [name: string]: Json;
}

interface Inputs {
  readonly add: { readonly by: number };
  readonly once: object;
}

type Definition = ResourcesDefinition<Count, { readonly target: number }, Inputs>;

export interface Parts extends Partial<Omit<Definition, "tools">> {
  /** What `once`, which may not run again, does. */
  readonly once?: () => Promise<ToolOutcome>;
  /** What `add` does before it adds. */
  readonly adding?: () => Promise<void>;
}

/** @param accepts which seeds the definition takes */
export function counterWith(
  { once, adding, ...parts }: Parts = {},
  accepts: (seed: Readonly<Record<string, unknown>>) => boolean = () => true,
): Resources {
  const definition: Definition = {
    name: "counter",
    mode: "exported",
    seed: z.looseObject({ target: z.int() }).refine(accepts),
    state: {
      open: () => ({ count: 0 }),
      evolve: ({ count }, by) => ({ count: count + z.int().parse(by) }),
    },
    tools: {
      add: {
        description: "adds",
        input: z.strictObject({ by: z.int() }),
        repeats: true,
        run: async ({ state: { count }, input: { by } }) => {
          await adding?.();
          return { result: `${count + by}`, change: by };
        },
      },
      once: {
        description: "does what may not be done again",
        input: z.strictObject({}),
        run: async () => (await once?.()) ?? { result: "done" },
      },
    },
    verify: { run: async ({ state: { count }, seed: { target } }) => ({ reward: count === target ? 1 : 0 }) },
    ...parts,
  };
  return defineResources(definition);
}

/** A door that a test opens, and knows of when somebody stands before it. */
export class Door {
  readonly reached: Promise<void>;
  readonly #opened: Promise<void>;
  #reach = () => {};
  #open = () => {};

  constructor() {
    this.reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#open();
  }

  async pass(signal?: AbortSignal): Promise<void> {
    this.#reach();
    const aborted = new Promise<void>((resolve) => {
      signal?.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([this.#opened, aborted]);
    signal?.throwIfAborted();
  }
}

/** Numbers kept outside the log, one for each session. */
export class Shelf implements ExternalState {
  readonly live = new Map<string, number>();
  readonly copies = new Map<string, number>();
  readonly calls: string[] = [];
  /** Of which rollout each hook fails. */
  readonly failing: Partial<Record<"open" | "capture" | "install", string>> = {};
  /** Where `open` waits, and the capture of `waiting`. */
  door: Door | undefined;
  waiting = "";

  readonly open = async (session: SessionName, signal: AbortSignal) => {
    this.#note("open", session);
    this.live.set(nameOf(session), 0);
    await this.door?.pass(signal);
    this.#fail("open", session);
  };

  readonly capture = async (session: SessionName, checkpointId: string) => {
    this.#note("capture", session);
    this.#fail("capture", session);
    const copy = `${checkpointId}:${nameOf(session)}`;
    this.copies.set(copy, this.live.get(nameOf(session)) ?? -1);
    if (session.rollout === this.waiting) await this.door?.pass();
    return { copy };
  };

  readonly install = async (reference: Json, session: SessionName) => {
    this.#note("install", session);
    const { copy } = z.object({ copy: z.string() }).parse(reference);
    this.live.set(nameOf(session), this.copies.get(copy) ?? -1);
    this.#fail("install", session);
  };

  readonly free = async (unneeded: Unneeded) => {
    if ("session" in unneeded) {
      this.#note("free", unneeded.session);
      this.live.delete(nameOf(unneeded.session));
    } else {
      const { copy } = z.object({ copy: z.string() }).parse(unneeded.reference);
      this.calls.push(`free ${copy}`);
      this.copies.delete(copy);
    }
  };

  #note(hook: string, session: SessionName): void {
    this.calls.push(`${hook} ${nameOf(session)}`);
  }

  #fail(hook: "open" | "capture" | "install", { rollout }: SessionName): void {
    if (this.failing[hook] === rollout) throw new HoldpointError("unavailable", `${hook} failed`);
  }
}

function nameOf({ rollout, attempt }: SessionName): string {
  return `${rollout}/${attempt}`;
}
