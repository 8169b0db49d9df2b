/** Who takes part, where, and when nobody did: a fold over the control subject. */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { ControlEvent, ParticipantId, Role } from "@holdpoint/schemas";

export interface Member extends ParticipantId {
  readonly worker: string;
  readonly incarnation: string;
  readonly endpoint: string | null;
}

/** Stream time, epoch milliseconds, from the last word of a process to the first of its successor. */
export interface Downtime extends ParticipantId {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface SavedDirectory {
  readonly members: ReadonlyMap<string, Member>;
  readonly downtimes: readonly Downtime[];
  /** Instances of which a worker went for good at any time, as `<role>.<instance>`. */
  readonly bereft: ReadonlySet<string>;
}

export class Directory {
  readonly #members = new Map<string, Member>();
  readonly #downtimes: Downtime[] = [];
  readonly #bereft = new Set<string>();
  readonly #listeners = new Set<(member: Member) => void>();
  readonly #gone = new Set<() => void>();

  apply({ event }: Recorded<ControlEvent>): void {
    if (event.type === "participant.joined") this.#joined(event.data);
    if (event.type !== "participant.left" && event.type !== "participant.removed") return;
    this.#members.delete(keyOf(event.data));
    this.#bereft.add(instanceOf(event.data));
    for (const listener of this.#gone) listener();
  }

  /** Everything it holds, as plain values. */
  save(): SavedDirectory {
    return { members: this.#members, downtimes: this.#downtimes, bereft: this.#bereft };
  }

  /** Takes over what `save` gave; for a directory that has applied nothing. */
  load({ members, downtimes, bereft }: SavedDirectory): void {
    for (const instance of bereft) this.#bereft.add(instance);
    for (const [key, member] of members) this.#members.set(key, member);
    this.#downtimes.push(...downtimes);
  }

  /** The members of a role, oldest first. */
  of(role: Role): readonly Member[] {
    return [...this.#members.values()].filter((member) => member.role === role);
  }

  find(role: Role, instance: string): Member | undefined {
    return this.of(role).find((member) => member.instance === instance);
  }

  /** Whether a worker of the instance was expected once and is no more, whoever has come since. */
  hasLost(role: Role, instance: string): boolean {
    return this.#bereft.has(instanceOf({ role, instance }));
  }

  /** When processes of these participants were down, oldest first. */
  downtimesOf(participants: readonly ParticipantId[]): readonly Downtime[] {
    return this.#downtimes.filter((downtime) =>
      participants.some(({ role, instance }) => role === downtime.role && instance === downtime.instance),
    );
  }

  /** Calls `listener` for every process that joins from now on. @returns how to stop that */
  onJoined(listener: (member: Member) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Calls `listener` whenever a process is expected no more. */
  onGone(listener: () => void): void {
    this.#gone.add(listener);
  }

  #joined(data: Extract<ControlEvent, { type: "participant.joined" }>["data"]): void {
    const { role, instance, worker, incarnation, endpoint, lastAtMs, announcedAtMs } = data;
    const member = { role, instance, worker, incarnation, endpoint };
    this.#members.set(keyOf(member), member);
    if (lastAtMs !== null) this.#downtimes.push({ role, instance, fromMs: lastAtMs, toMs: announcedAtMs });
    for (const listener of this.#listeners) listener(member);
  }
}

function instanceOf({ role, instance }: ParticipantId): string {
  return `${role}.${instance}`;
}

function keyOf({ role, instance, worker }: ParticipantId & { readonly worker: string }): string {
  return `${role}.${instance}.${worker}`;
}
