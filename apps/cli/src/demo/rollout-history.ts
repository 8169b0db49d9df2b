/** A run's history taken apart by rollout. */
import type { Recorded } from "@holdpoint/eventsourcing";
import type { History } from "./history.ts";

type Records<Role extends "environment" | "agent" | "resources" | "model"> = Recorded<History[Role][number]["event"]>[];

/** What of a history is about one rollout. */
export interface RolloutHistory {
  readonly environment: Records<"environment">;
  readonly agent: Records<"agent">;
  readonly resources: Records<"resources">;
  readonly model: Records<"model">;
}

/** The history of every rollout that was ever opened. */
export function byRollout(history: History): ReadonlyMap<string, RolloutHistory> {
  const parts = new Map<string, RolloutHistory>();
  for (const { event } of history.environment) {
    if (event.type !== "episode.opened" || parts.has(event.data.rollout)) continue;
    parts.set(event.data.rollout, { environment: [], agent: [], resources: [], model: [] });
  }
  const deal = <E extends { readonly data: object }>(
    records: readonly Recorded<E>[],
    into: (part: RolloutHistory) => Recorded<E>[],
  ) => {
    for (const record of records) {
      const { data } = record.event;
      const part = "rollout" in data && typeof data.rollout === "string" ? parts.get(data.rollout) : undefined;
      if (part !== undefined) into(part).push(record);
    }
  };
  deal(history.environment, (part) => part.environment);
  deal(history.agent, (part) => part.agent);
  deal(history.resources, (part) => part.resources);
  deal(history.model, (part) => part.model);
  return parts;
}
