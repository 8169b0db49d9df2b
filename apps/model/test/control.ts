/** A hand-written controller: appends to the control subject what a coordinator would, and waits for the model's answers. */
import { decodeEvents, encodeEvents, type EventLog, eventSchema } from "@holdpoint/eventsourcing";
import type { LedgerEvent } from "@holdpoint/ledger";
import {
  type ControlEvent,
  controlSubject,
  type Episode,
  logEvents,
  logSubject,
  type ParticipantEvent,
} from "@holdpoint/schemas";
import { setTimeout as pause } from "node:timers/promises";

type Ask = Extract<ControlEvent, { type: "participants.asked" }>["data"];
export type Answer = Extract<ParticipantEvent, { type: "participant.answered" }>["data"];

const events = eventSchema(logEvents.model);
const writer = { role: "model", instance: "main", worker: "0" } as const;

export class Control {
  readonly #log: EventLog;
  readonly #run: string;
  #command = 1;

  constructor(log: EventLog, run: string) {
    this.#log = log;
    this.#run = run;
  }

  /** Appends a control event. @returns its sequence */
  async decide(event: ControlEvent): Promise<number> {
    const subject = controlSubject(this.#run);
    const sequence = (await this.#log.lastOn(subject))?.sequence ?? 0;
    const messageId = `control-${sequence}`;
    const draft = { ...encodeEvents("coordinator", [event]), subject, messageId, expected: { subject, sequence } };
    const result = await this.#log.append(draft);
    if (!result.stored) throw new Error("the control subject has another writer");
    return result.sequence;
  }

  /** Everything that the model has said, oldest first. */
  async said(): Promise<readonly LedgerEvent[]> {
    const found: LedgerEvent[] = [];
    const upTo = await this.#log.lastSequence();
    await this.#log.read({ upTo, subjects: [logSubject(this.#run, writer)] }, (message) => {
      for (const { event } of decodeEvents(message, events).events) found.push(event);
    });
    return found;
  }

  /** The calls' events, as `type turn`. */
  async calls(): Promise<readonly string[]> {
    return (await this.said()).flatMap(({ type, data }) => ("turn" in data ? [`${type} ${data.turn}`] : []));
  }

  /** Asks the model, and returns its answer. */
  async ask(operation: Ask["operation"], checkpointId: string | null, rest: Partial<Ask> = {}): Promise<Answer> {
    this.#command += 1;
    const roles = ["model" as const];
    const data = { command: this.#command, operation, roles, checkpointId, remainingMs: 60_000, ...rest };
    const asked = await this.decide({ type: "participants.asked", data });
    for (;;) {
      for (const { type, data: said } of await this.said()) {
        if (type === "participant.answered" && said.asked === asked) return said;
      }
      await pause(2);
    }
  }

  /** Closes admission for a checkpoint. */
  async close(checkpointId: string): Promise<Answer> {
    return this.ask("prepare", checkpointId);
  }

  /** Opens admission again; the id is stale from here. */
  async open(checkpointId: string): Promise<void> {
    await this.decide({ type: "checkpoint.resumed", data: { command: null, checkpointId, reason: "command" } });
    await this.ask("resume", checkpointId);
    await this.decide({ type: "resume.ended", data: { command: null, checkpointId } });
  }

  /** Captures what is in `scope`, admission being closed. @returns the model's answer, and the cut */
  async capture(checkpointId: string, scope: readonly Episode[]) {
    const answer = await this.ask("capture", checkpointId, { scope: [...scope] });
    const data = { command: this.#command, checkpointId, stream: this.#log.stream, scope: [...scope], holdings: [] };
    const cut = await this.decide({ type: "checkpoint.captured", data });
    return { answer, cut: { [this.#log.stream]: cut } };
  }

  /** A whole checkpoint of `scope`. */
  async checkpoint(checkpointId: string, scope: readonly Episode[]) {
    await this.close(checkpointId);
    const captured = await this.capture(checkpointId, scope);
    await this.open(checkpointId);
    return captured;
  }

  /** Restores `rollout` from attempt `from` as attempt `to`. */
  async restore(
    checkpointId: string,
    source: { readonly id: string; readonly cut: Readonly<Record<string, number>> },
    assignment: { readonly rollout: string; readonly from: number; readonly to: number },
  ): Promise<Answer> {
    const assignments = [assignment];
    const cut = { ...source.cut };
    const started = { command: this.#command, checkpointId, source: source.id, cut, assignments };
    await this.decide({ type: "restore.started", data: started });
    const answer = await this.ask("restore", checkpointId, { source: source.id, cut, assignments });
    const installed = { command: this.#command, checkpointId, source: source.id, receipt: [] };
    await this.decide({ type: "restore.installed", data: installed });
    await this.open(checkpointId);
    return answer;
  }

  /** Retires the attempt and all before it. */
  async retire(episode: Episode): Promise<Answer> {
    const rollouts = [episode];
    await this.decide({ type: "rollouts.marked", data: { command: this.#command, rollouts } });
    return this.ask("retire", null, { rollouts });
  }
}

/** The session's part in the checkpoint, as the model said it. */
export function capturedIn(said: readonly LedgerEvent[], checkpointId: string) {
  return said.flatMap(({ type, data }) =>
    type === "session.captured" && data.checkpointId === checkpointId ? [data] : [],
  );
}
