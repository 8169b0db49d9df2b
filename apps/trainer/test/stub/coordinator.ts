/** A coordinator as a trainer meets it: every command is obeyed at once, and says so on control. */
import { HoldpointError } from "@holdpoint/errors";
import { parseJson, type StoredMessage } from "@holdpoint/eventsourcing";
import {
  type Command,
  type ControlEvent,
  controlSubject,
  type Episode,
  filters,
  type Outcome,
  outcomeSubject,
  parseCommand,
  parseStreamSubject,
  type Problem,
  type Result,
} from "@holdpoint/schemas";
import type { Episodes, LiveEpisode } from "./episodes.ts";
import type { Seat } from "./process.ts";

interface Committed {
  readonly cut: number;
  readonly scope: readonly LiveEpisode[];
}

type Order<O extends Command["operation"]> = Extract<Command, { operation: O }>;

export class StubCoordinator {
  /** Problems that the next commands of an operation end with, in turn. */
  readonly failures = new Map<Command["operation"], Problem[]>();
  readonly #seat: Seat;
  readonly #run: string;
  readonly #episodes: Episodes;
  readonly #committed = new Map<string, Committed>();
  readonly #highest = new Map<string, number>();
  #lastResumed = "";
  #appended = 0;
  #obeyed: Promise<void> = Promise.resolve();

  constructor(seat: Seat, run: string, episodes: Episodes) {
    this.#seat = seat;
    this.#run = run;
    this.#episodes = episodes;
  }

  /** How many episodes the newest checkpoint holds. */
  get newestHolds(): number {
    return [...this.#committed.values()].at(-1)?.scope.length ?? 0;
  }

  /** The checkpoints that can be restored, oldest first. */
  get restorable(): readonly string[] {
    return [...this.#committed.keys()];
  }

  async serve(): Promise<void> {
    await this.#seat.log.tail({ from: 1, subjects: [filters.commands(this.#run)] }, (message) => {
      this.#obeyed = this.#obeyed.then(() => this.#obey(message));
    });
  }

  async #obey({ subject, body, sequence: command }: StoredMessage): Promise<void> {
    const address = parseStreamSubject(subject);
    const json = parseJson(body);
    if (address?.kind !== "command" || address.operation === undefined || !json.ok) throw new Error(subject);
    const order = parseCommand(address.operation, json.value);
    if (!order.success) throw order.error;
    const problem = this.failures.get(address.operation)?.shift();
    const outcome = await this.#outcomeOf(order.data, command, problem);
    const target = outcomeSubject(this.#run, command);
    const expected = { subject: target, sequence: 0 };
    const draft = { subject: target, body: JSON.stringify(outcome), messageId: `outcome-${command}`, expected };
    await this.#seat.log.append(draft);
  }

  async #outcomeOf(order: Command, command: number, problem: Problem | undefined): Promise<Outcome> {
    const { operation } = order;
    if (problem !== undefined) return { ok: false, command, operation, problem };
    try {
      return { ok: true, command, operation, result: await this.#do(order, command) };
    } catch (error) {
      if (!HoldpointError.is(error)) throw error;
      return { ok: false, command, operation, problem: { code: error.code, message: error.message } };
    }
  }

  async #do(order: Command, command: number): Promise<Result> {
    const idle: Result = { phase: "idle", checkpointId: null };
    switch (order.operation) {
      case "checkpoint":
        return this.#checkpoint(order, command);
      case "restore":
        return this.#restore(order, command);
      case "retire":
        await this.#retire(order.rollouts, command);
        return idle;
      case "resume":
        this.#episodes.open();
        await this.#resumed(order.checkpointId, command);
        return idle;
      case "release":
        await this.#release(order, command);
        return idle;
      case "status":
        return { ...idle, restorable: [...this.#committed.keys()] };
      default:
        return idle;
    }
  }

  async #checkpoint({ checkpointId }: Order<"checkpoint">, command: number): Promise<Result> {
    const opened = { command, checkpointId, kind: "checkpoint" as const, deadlineAtMs: 0 };
    await this.#say({ type: "checkpoint.opened", data: opened });
    await this.#episodes.close();
    const scope = [...this.#episodes.live.values()];
    const named = scope.map(({ rollout, attempt }) => ({ rollout, attempt }));
    const { stream } = this.#seat.log;
    const cut = await this.#say({
      type: "checkpoint.captured",
      data: { command, checkpointId, stream, scope: named, holdings: [] },
    });
    this.#episodes.open();
    this.#committed.set(checkpointId, { cut, scope });
    const committed = {
      command,
      checkpointId,
      cut: { [stream]: cut },
      anchor: "0".repeat(64),
      scope: named,
      holdings: [],
    };
    await this.#say({ type: "checkpoint.committed", data: { ...committed, capturedAtMs: 0 } });
    await this.#resumed(checkpointId, command);
    return { phase: "idle", checkpointId, continued: named, cut: { [stream]: cut } };
  }

  async #restore({ checkpointId, source, scope }: Order<"restore">, command: number): Promise<Result> {
    const { cut, scope: held } = this.#committed.get(source) ?? { cut: 0, scope: [] };
    const wanted = held.filter(({ rollout }) => scope?.includes(rollout) ?? true);
    const live = wanted.filter(({ rollout }) => this.#episodes.live.has(rollout));
    if (live.length > 0) throw new HoldpointError("invalid_phase", `${live.length} can still run`);
    const assignments = wanted.map(({ rollout, attempt: from }) => {
      const opened = this.#episodes.dispatched.filter((key) => key.startsWith(`${rollout}/`));
      const attempts = opened.map((key) => Number(key.split("/")[1]));
      return { rollout, from, to: Math.max(...attempts, this.#highest.get(rollout) ?? 0, from) + 1 };
    });
    await this.#say({ type: "checkpoint.opened", data: { command, checkpointId, kind: "restore", deadlineAtMs: 0 } });
    const ids = { command, checkpointId, source };
    await this.#episodes.close();
    await this.#say({ type: "restore.started", data: { ...ids, cut: { [this.#seat.log.stream]: cut }, assignments } });
    await this.#say({ type: "restore.installed", data: { ...ids, receipt: [] } });
    for (const { rollout, to } of assignments) {
      const from = wanted.find((episode) => episode.rollout === rollout);
      if (from !== undefined) this.#episodes.live.set(rollout, { ...from, attempt: to, claimed: false });
      this.#highest.set(rollout, to);
    }
    return { phase: "restored", checkpointId, receipt: [] };
  }

  async #retire(rollouts: readonly Episode[], command: number): Promise<void> {
    await this.#say({ type: "rollouts.marked", data: { command, rollouts: [...rollouts] } });
    for (const { rollout, attempt } of rollouts) {
      this.#highest.set(rollout, Math.max(attempt, this.#highest.get(rollout) ?? 0));
      if ((this.#episodes.live.get(rollout)?.attempt ?? attempt + 1) <= attempt) this.#episodes.live.delete(rollout);
    }
    await this.#say({ type: "rollouts.retired", data: { command, rollouts: [...rollouts] } });
  }

  async #release({ checkpointId, kept }: Order<"release">, command: number): Promise<void> {
    if (checkpointId !== this.#lastResumed) throw new Error(`${checkpointId} is not ${this.#lastResumed}`);
    const dropped = [...this.#committed.keys()].filter((id) => !kept.includes(id));
    for (const id of dropped) this.#committed.delete(id);
    await this.#say({ type: "checkpoint.releasing", data: { command, checkpointId, kept: [...kept], dropped } });
    await this.#say({ type: "checkpoint.released", data: { command, checkpointId } });
  }

  async #resumed(checkpointId: string, command: number): Promise<void> {
    this.#lastResumed = checkpointId;
    await this.#say({ type: "checkpoint.resumed", data: { command, checkpointId, reason: "command" } });
  }

  async #say(event: ControlEvent): Promise<number> {
    const subject = controlSubject(this.#run);
    const expected = { subject, sequence: (await this.#seat.log.lastOn(subject))?.sequence ?? 0 };
    const body = JSON.stringify({ schema: 1, incarnation: "stub", events: [event] });
    const result = await this.#seat.log.append({ subject, body, messageId: `stub-${this.#appended++}`, expected });
    if (!result.stored) throw new Error("another coordinator writes");
    return result.sequence;
  }
}
