import type { EpisodeState } from "@holdpoint/episode";
import type { EnvironmentEvent } from "@holdpoint/schemas";
import type { Participant } from "../participant.ts";

/** The environment as a participant: its sessions are episodes. */
export type Environment = Participant<EpisodeState, EnvironmentEvent>;
