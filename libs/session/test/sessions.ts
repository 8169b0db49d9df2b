/** Sessions for tests: a kind whose state is what was said, and a log that counts its sequences. */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { ControlEvent, Episode } from "@holdpoint/schemas";
import { SessionFold, type SessionKind } from "@holdpoint/session";

/** An event of the process' own log. */
export interface Said {
  readonly type: string;
  readonly data: object;
}

/** What was said of a session, and what of that a checkpoint leaves out. */
export interface Words {
  readonly said: readonly string[];
  readonly unfinished: string | null;
}

function wordOf({ type, data }: Said): string {
  return "word" in data && typeof data.word === "string" ? `${type}:${data.word}` : type;
}

/** `session.seeded` opens; `draft` is left out by a checkpoint until the next event. */
export const wordsKind: SessionKind<Words, Said> = {
  open: (event) => (event.type === "session.seeded" ? { said: [wordOf(event)], unfinished: null } : undefined),
  evolve: ({ said }, event) =>
    event.type === "draft" ? { said, unfinished: wordOf(event) } : { said: [...said, wordOf(event)], unfinished: null },
  fix: ({ said }) => ({ said, unfinished: null }),
  summary: ({ said }) => said,
  edges: ({ said }) => ({ calls: { received: said.length, last: null } }),
};

export const digest = "0".repeat(64);

/** A fold with the log that it reads. */
export class Told {
  readonly fold = new SessionFold(wordsKind);
  /** Which life of the process speaks. */
  incarnation = "i1";
  #sequence: number;

  /** @param sequence of the last message before */
  constructor(sequence = 0) {
    this.#sequence = sequence;
  }

  get sequence(): number {
    return this.#sequence;
  }

  /** Something said about an episode. @returns its sequence */
  say(type: string, episode: Episode, more: object = {}): number {
    this.fold.apply(this.#recorded({ type, data: { ...episode, ...more } }));
    return this.#sequence;
  }

  /** Something said about no episode. */
  sayOfNone(type: string, data: object): void {
    this.fold.apply(this.#recorded({ type, data }));
  }

  decide(event: ControlEvent): void {
    this.fold.applyControl(this.#recorded(event));
  }

  ask(operation: "prepare" | "capture" | "restore" | "resume", checkpointId: string | null): void {
    const data = { command: 1, operation, roles: [], checkpointId, remainingMs: 1 };
    this.decide({ type: "participants.asked", data });
  }

  /** Captures these episodes. */
  capture(checkpointId: string, ...episodes: readonly Episode[]): void {
    this.ask("capture", checkpointId);
    for (const episode of episodes) this.say("session.captured", episode, { checkpointId, digest, edges: {} });
  }

  /** The process answers an ask to capture. */
  answerCapture(checkpointId: string, more: object): void {
    this.sayOfNone("participant.answered", { operation: "capture", checkpointId, ...more });
  }

  /** `to` goes on from what `source` holds of `from`. */
  restore(checkpointId: string, source: string, from: Episode, to: number): void {
    this.say("session.restored", { ...from, attempt: to }, { checkpointId, source, from: from.attempt, digest });
  }

  installed(checkpointId: string, source: string): void {
    this.decide({ type: "restore.installed", data: { command: 1, checkpointId, source, receipt: [] } });
  }

  failed(checkpointId: string, source: string): void {
    const problem = { code: "invalid_checkpoint_state" as const, message: "no" };
    this.decide({ type: "restore.failed", data: { command: 1, checkpointId, source, problem } });
  }

  released(...kept: readonly string[]): void {
    const data = { command: 1, checkpointId: kept[0] ?? "c", kept: [...kept], dropped: [] };
    this.decide({ type: "checkpoint.releasing", data });
  }

  #recorded<E>(event: E): Recorded<E> {
    this.#sequence += 1;
    const sequence = this.#sequence;
    return { event, sequence, index: 0, subject: "s", timeMs: sequence, incarnation: this.incarnation };
  }
}

/** A process that holds a seeded session for each of these. */
export function holding(...episodes: readonly Episode[]): Told {
  const told = new Told();
  for (const episode of episodes) told.say("session.seeded", episode);
  return told;
}
