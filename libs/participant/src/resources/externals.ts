/**
 * State that cannot live in the log: captured inside the hold, installed at a restore, freed when nothing refers to it.
 *
 * 1. A session's state names what the checkpoint fixed with it, so that the log alone says what a checkpoint needs.
 * 2. A restore looks at every session first, and only then installs any; where one fails, those that were are freed.
 * 3. What was installed for a restore that came to nothing is freed when admission opens.
 * 4. A release frees what it knows to be needed by nobody; what a capture is making is not known yet.
 * 5. What a kept checkpoint has captured is never freed, also where another worker's log says so and this one only took it over.
 */
import { HoldpointError } from "@holdpoint/errors";
import { Json, type ResourcesEvent } from "@holdpoint/schemas";
import { keyOf, type Session } from "@holdpoint/session";
import type { RoleHooks } from "../role-spec.ts";
import { type Called, freed, hooked } from "./author-hook.ts";
import { eachBounded } from "./bounded.ts";
import { type Desk, namedSession } from "./desk.ts";
import type { ExternalState, SessionName } from "./external-hooks.ts";
import { pendingSessions } from "../live-sessions.ts";
import type { ResourcesSession } from "./resources-session.ts";

type Hooks = RoleHooks<ResourcesSession, ResourcesEvent>;

/** Sessions that are captured, or installed, at once. */
const lanes = 16;
const maxReferenceBytes = 16_384;

/** What a capture made. */
interface Captured {
  readonly checkpointId: string;
  readonly reference: Json;
}

export class Externals {
  readonly #desk: Desk;
  /** Made for a restore that is not installed yet. */
  readonly #installed = new Map<string, SessionName>();
  /** What this process, or one before it, has captured or taken over, by the JSON of its reference. */
  readonly #known = new Map<string, Captured>();
  /** Of the capture that is under way: no session may name them yet. */
  readonly #fresh = new Set<string>();

  /** Knows also what the process before this one captured, and what it installed for a restore that is under way. */
  constructor(desk: Desk) {
    this.#desk = desk;
    if (desk.resources.external === undefined) return;
    for (const session of pendingSessions(desk.participant)) this.#installed.set(keyOf(session), namedSession(session));
    for (const captured of this.#held()) this.#know(captured);
  }

  get hooks(): Pick<Hooks, "capture" | "restore" | "release" | "opened"> {
    const { external } = this.#desk.resources;
    const validated: Hooks["restore"] = async (sessions) => {
      for (const session of sessions) await this.#validate(session);
      return [];
    };
    if (external === undefined) return { restore: validated };
    return {
      capture: (sessions, checkpointId, signal) => this.#capture(external, sessions, { checkpointId, signal }),
      restore: async (sessions, signal) => {
        await validated(sessions, signal);
        return this.#restore(external, sessions, signal);
      },
      release: (released, signal) => this.#release(external, released, signal),
      opened: () => this.#opened(),
    };
  }

  /** Frees what a session stands on that is over. One that fails is left to the next release. */
  async free(session: SessionName): Promise<void> {
    await freed(this.#desk, session, `what ${session.rollout}, attempt ${session.attempt}, stood on was not freed`);
  }

  /** @throws HoldpointError `invalid_checkpoint_state` where this definition cannot go on with what was fixed */
  async #validate({ rollout, attempt, state }: Session<ResourcesSession>): Promise<void> {
    const { participant, resources } = this.#desk;
    const refuse = (why: string, cause?: unknown): never => {
      const words = `${resources.name} cannot go on with ${rollout} as it was fixed: ${why}`;
      throw new HoldpointError("invalid_checkpoint_state", words, { details: { rollout, attempt }, cause });
    };
    if (state.lost !== null) refuse(state.lost);
    const seed: unknown = JSON.parse(await participant.contents.read(state.seed));
    try {
      await resources.checkSeed(seed);
    } catch (error) {
      refuse("its seed is not what the definition takes", error);
    }
  }

  async #capture(
    external: ExternalState,
    sessions: readonly Session<ResourcesSession>[],
    { checkpointId, signal }: { readonly checkpointId: string; readonly signal: AbortSignal },
  ): Promise<readonly ResourcesEvent[]> {
    const events: ResourcesEvent[] = [];
    this.#fresh.clear();
    await eachBounded(sessions, lanes, async (session) => {
      signal.throwIfAborted();
      const { rollout, attempt } = session;
      const reference = checked(
        await this.#hooked({ name: "external.capture", signal, episode: session }, (over) =>
          external.capture(namedSession(session), checkpointId, over),
        ),
        rollout,
      );
      this.#fresh.add(nameOf(reference));
      this.#know({ checkpointId, reference });
      events.push({ type: "state.exported", data: { rollout, attempt, checkpointId, reference } });
    });
    return events;
  }

  async #restore(
    external: ExternalState,
    sessions: readonly Session<ResourcesSession>[],
    signal: AbortSignal,
  ): Promise<readonly ResourcesEvent[]> {
    const orders = sessions.map((session) => ({ session: namedSession(session), captured: capturedOf(session) }));
    try {
      await eachBounded(orders, lanes, async ({ session, captured }) => {
        signal.throwIfAborted();
        this.#installed.set(keyOf(session), session);
        this.#know(captured);
        const called = { name: "external.install", signal, episode: session };
        await this.#hooked(called, (over) => external.install(captured.reference, session, over));
      });
    } catch (error) {
      await this.#takeBack(orders.map(({ session }) => session));
      throw error;
    }
    return [];
  }

  async #takeBack(sessions: readonly SessionName[]): Promise<void> {
    const made = sessions.filter((session) => this.#installed.delete(keyOf(session)));
    await Promise.all(made.map((session) => this.free(session)));
  }

  async #release(
    external: ExternalState,
    { kept, dropped }: { readonly kept: readonly string[]; readonly dropped: readonly string[] },
    signal: AbortSignal,
  ): Promise<readonly ResourcesEvent[]> {
    const held = new Set(this.#held().map(({ reference }) => nameOf(reference)));
    const isNeeded = (name: string, { checkpointId }: Captured) => held.has(name) || kept.includes(checkpointId);
    const unneeded = [...this.#known].filter(([name, known]) => !isNeeded(name, known) && !this.#fresh.has(name));
    await eachBounded(unneeded, lanes, async ([name, { reference }]) => {
      signal.throwIfAborted();
      await this.#hooked({ name: "external.free", signal }, (over) => external.free({ reference }, over));
      this.#known.delete(name);
    });
    const needed = [...this.#known].filter(([name, known]) => isNeeded(name, known));
    const references = needed.map(([, { reference }]) => reference);
    await this.#hooked({ name: "external.release", signal }, async (over) =>
      external.release?.({ kept, dropped, references }, over),
    );
    return [];
  }

  /** What fails here may go well when it is asked for again. */
  #hooked<Result>(called: Omit<Called, "code">, call: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    return hooked(this.#desk, { ...called, code: "unavailable" }, call);
  }

  #know(captured: Captured): void {
    this.#known.set(nameOf(captured.reference), captured);
  }

  /** What sessions and checkpoints of this worker's log refer to. */
  #held(): readonly Captured[] {
    const exported = this.#desk.participant.sessions.held().map(({ state }) => state.exported);
    return exported.filter((known) => known !== null);
  }

  /** A restore is over: what it installed lives, or is nobody's. */
  #opened(): void {
    const { sessions } = this.#desk.participant;
    const left = [...this.#installed.values()].filter((session) => sessions.get(session) === undefined);
    this.#installed.clear();
    this.#fresh.clear();
    for (const session of left) void this.free(session);
  }
}

/** @throws HoldpointError `invalid_checkpoint_state` where the session names nothing that this checkpoint fixed */
function capturedOf({ rollout, attempt, state, from }: Session<ResourcesSession>): Captured {
  const { exported } = state;
  if (exported !== null && exported.checkpointId === from?.source) return exported;
  throw new HoldpointError(
    "invalid_checkpoint_state",
    `the log names no external state of ${rollout} for checkpoint ${from?.source ?? ""}`,
    { details: { rollout, attempt } },
  );
}

function nameOf(reference: Json): string {
  return JSON.stringify(reference);
}

function checked(reference: unknown, rollout: string): Json {
  const parsed = Json.safeParse(reference);
  if (parsed.success && Buffer.byteLength(JSON.stringify(parsed.data)) <= maxReferenceBytes) return parsed.data;
  throw new HoldpointError(
    "invalid_checkpoint_state",
    `external.capture of ${rollout} gave no reference; expected JSON of at most ${maxReferenceBytes} bytes`,
  );
}
