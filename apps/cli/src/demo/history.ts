/** A run's stream, read to its end: the events of each writer in order, with their places. */
import { type Decoded, decodeEvents, type EventSchema, eventSchema, type Recorded } from "@holdpoint/eventsourcing";
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { ControlEvent, logEvents, type LogEventOf, parseStreamSubject } from "@holdpoint/schemas";

type Of<Role extends keyof typeof logEvents> = readonly Recorded<LogEventOf<Role>>[];

export interface History {
  readonly control: readonly Recorded<ControlEvent>[];
  readonly environment: Of<"environment">;
  readonly agent: Of<"agent">;
  readonly resources: Of<"resources">;
  readonly model: Of<"model">;
  readonly trainer: Of<"trainer">;
  /** What could not be read, as sentences. */
  readonly problems: readonly string[];
  readonly messages: number;
  readonly bytes: number;
}

/** Collects the messages of a stream, delivered in order. */
export class HistoryReader {
  readonly #problems: string[] = [];
  readonly #control = new Channel(eventSchema(ControlEvent));
  readonly #logs = {
    environment: new Channel(eventSchema(logEvents.environment)),
    agent: new Channel(eventSchema(logEvents.agent)),
    resources: new Channel(eventSchema(logEvents.resources)),
    model: new Channel(eventSchema(logEvents.model)),
    trainer: new Channel(eventSchema(logEvents.trainer)),
  };
  #messages = 0;
  #bytes = 0;

  take(message: StoredMessage): void {
    this.#messages += 1;
    this.#bytes += message.body.byteLength;
    const address = parseStreamSubject(message.subject);
    if (address?.kind === "control") this.#problems.push(...this.#control.take(message));
    else if (address?.kind === "log" || address?.kind === "result") {
      this.#problems.push(...this.#logs[address.writer.role].take(message));
    }
  }

  history(): History {
    const { environment, agent, resources, model, trainer } = this.#logs;
    return {
      control: this.#control.events,
      environment: environment.events,
      agent: agent.events,
      resources: resources.events,
      model: model.events,
      trainer: trainer.events,
      problems: this.#problems,
      messages: this.#messages,
      bytes: this.#bytes,
    };
  }
}

/** The events of one kind of writer, as far as they were read. */
class Channel<E> {
  readonly events: Recorded<E>[] = [];
  readonly #schema: EventSchema<E>;

  constructor(schema: EventSchema<E>) {
    this.#schema = schema;
  }

  take(message: StoredMessage): readonly string[] {
    const decoded: Decoded<E> = decodeEvents(message, this.#schema);
    this.events.push(...decoded.events);
    return decoded.problems;
  }
}
