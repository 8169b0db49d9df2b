/** Participants whose sessions stand at boundaries: all that a checkpoint costs is its own work. */
import { eventSchema } from "@holdpoint/eventsourcing";
import { openBlobs } from "@holdpoint/jetstream";
import { Participant, type Service, sha256 } from "@holdpoint/participant";
import { type AgentEvent, type Episode, logEvents, type ParticipantEvent, type Role } from "@holdpoint/schemas";
import type { SessionKind } from "@holdpoint/session";
import type { Room } from "./room.ts";

export type Standing = Participant<number, AgentEvent>;

const seed = { digest: sha256(""), bytes: 0, text: "" };
export const standingEvents = eventSchema(logEvents.agent);

const standingKind: SessionKind<number, AgentEvent | ParticipantEvent> = {
  open: (event) => (event.type === "session.seeded" ? 0 : undefined),
  evolve: (state) => state,
  fix: (state) => state,
  summary: (state) => state,
  edges: () => ({}),
};

/** `count` episodes, `r0` and so on. */
export function episodesOf(count: number): readonly Episode[] {
  return Array.from({ length: count }, (_, at) => ({ rollout: `r${at}`, attempt: 0 }));
}

/** Every `of`th of `episodes`, from number `at` on. */
export function shareOf(episodes: readonly Episode[], at: number, of: number): readonly Episode[] {
  return episodes.filter((_, index) => index % of === at);
}

async function open(room: Room, role: Role, instance: string): Promise<Standing> {
  const { run, connection, log } = room;
  return Participant.open<number, AgentEvent>(
    {
      run,
      instance,
      worker: "0",
      incarnation: `bench-${role}-${instance}`,
      log,
      blobs: openBlobs(connection, run, sha256),
      messenger: await room.connectAs(role),
      clock: () => Date.now(),
      fenced: () => {},
      trouble: (what, error) => process.stderr.write(`${what} ${String(error)}\n`),
    },
    { role, mode: "exported", kind: standingKind, schema: standingEvents },
  );
}

/** A participant of `role` that holds `episodes`; an agent's park one by one as soon as admission closes. */
export async function enter(
  room: Room,
  role: Role,
  episodes: readonly Episode[],
  {
    instance = "main",
    methods = {},
  }: { readonly instance?: string; readonly methods?: Service<number, AgentEvent>["methods"] } = {},
): Promise<Standing> {
  const participant = await open(room, role, instance);
  const opened = episodes.map((episode): AgentEvent => ({
    type: "session.seeded",
    data: { ...episode, sessionId: "s", seed },
  }));
  for (let from = 0; from < opened.length; from += 500) await participant.record(...opened.slice(from, from + 500));
  const park = () => {
    if (role === "agent") for (const episode of episodes) void participant.boundary(episode);
  };
  await participant.serve({ methods, hooks: { closed: park } });
  return participant;
}
