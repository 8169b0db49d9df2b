/** How far a run is, as its log tells it while it runs: what the kills are timed by, and what is shown. */
import { decodeEvents, eventSchema, type StoredMessage } from "@holdpoint/eventsourcing";
import { ControlEvent, logEvents, parseStreamSubject } from "@holdpoint/schemas";

export interface Progress {
  /** Model calls that agents received, and tool calls that were executed, those of abandoned attempts included. */
  readonly calls: number;
  readonly tools: number;
  readonly opened: number;
  readonly finished: number;
  /** Committed. */
  readonly checkpoints: number;
  /** Rollouts that the latest checkpoint that the trainer has saved holds, and that have not finished. */
  readonly restorable: number;
  readonly restores: number;
  readonly groups: number;
  /** Whether admission is closed for a checkpoint or a restore. */
  readonly isClosed: boolean;
}

type Listener = (progress: Progress) => void;

const schemas = {
  environment: eventSchema(logEvents.environment),
  agent: eventSchema(logEvents.agent),
  resources: eventSchema(logEvents.resources),
  trainer: eventSchema(logEvents.trainer),
};
const control = eventSchema(ControlEvent);

export class ProgressFold {
  #calls = 0;
  #tools = 0;
  #checkpoints = 0;
  #held: readonly string[] = [];
  /** The rollouts of each committed checkpoint. */
  readonly #scopes = new Map<string, readonly string[]>();
  #restores = 0;
  #isClosed = false;
  readonly #opened = new Set<string>();
  readonly #finished = new Set<string>();
  readonly #groups = new Set<string>();
  readonly #listeners = new Set<Listener>();

  get now(): Progress {
    return {
      calls: this.#calls,
      tools: this.#tools,
      opened: this.#opened.size,
      finished: this.#finished.size,
      checkpoints: this.#checkpoints,
      restorable: this.#held.filter((rollout) => !this.#finished.has(rollout)).length,
      restores: this.#restores,
      groups: this.#groups.size,
      isClosed: this.#isClosed,
    };
  }

  take(message: StoredMessage): void {
    const address = parseStreamSubject(message.subject);
    if (address?.kind === "control") {
      for (const { event } of decodeEvents(message, control).events) this.#control(event);
    } else if (address?.kind === "log" || address?.kind === "result") this.#log(message, address.writer.role);
    for (const listener of this.#listeners) listener(this.now);
  }

  /** Resolves once `holds`; looks again after each message. Rejects once the signal is aborted. */
  until(holds: (progress: Progress) => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        stopLooking();
        signal.removeEventListener("abort", abort);
        end();
      };
      const abort = () => settle(() => reject(new Error("no longer waited for", { cause: signal.reason })));
      const look: Listener = (progress) => {
        if (signal.aborted) abort();
        else if (holds(progress)) settle(resolve);
      };
      const stopLooking = this.onChange(look);
      signal.addEventListener("abort", abort);
      look(this.now);
    });
  }

  onChange(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #control(event: ControlEvent): void {
    if (event.type === "checkpoint.opened") this.#isClosed = true;
    else if (event.type === "checkpoint.resumed" || event.type === "checkpoint.proceeded") this.#isClosed = false;
    else if (event.type === "restore.installed") this.#restores += 1;
    else if (event.type === "checkpoint.committed") {
      this.#checkpoints += 1;
      const { checkpointId, scope } = event.data;
      const rollouts = scope.map(({ rollout }) => rollout);
      this.#scopes.set(checkpointId, rollouts);
    }
  }

  #log(message: StoredMessage, role: string): void {
    if (role === "agent") this.#calls += count(message, schemas.agent, "call.received");
    else if (role === "resources") this.#tools += count(message, schemas.resources, "tool.finished");
    else if (role === "environment") this.#environment(message);
    else if (role === "trainer") this.#trainer(message);
  }

  #environment(message: StoredMessage): void {
    for (const { event } of decodeEvents(message, schemas.environment).events) {
      if (event.type === "episode.opened") this.#opened.add(event.data.rollout);
      if (event.type === "episode.ended") this.#finished.add(event.data.rollout);
    }
  }

  #saved(checkpointId: string | null): void {
    if (checkpointId !== null) this.#held = this.#scopes.get(checkpointId) ?? [];
  }

  #trainer(message: StoredMessage): void {
    for (const { event } of decodeEvents(message, schemas.trainer).events) {
      if (event.type === "group.trained") this.#groups.add(event.data.group);
      if (event.type === "trainer.saved") this.#saved(event.data.checkpointId);
    }
  }
}

function count<E extends { readonly type: string }>(
  message: StoredMessage,
  schema: Parameters<typeof decodeEvents<E>>[1],
  type: E["type"],
): number {
  return decodeEvents(message, schema).events.filter(({ event }) => event.type === type).length;
}
