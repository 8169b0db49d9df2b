import type { EpisodeState } from "@holdpoint/episode";
import type { Participant } from "@holdpoint/participant";
import type { EnvironmentEvent } from "@holdpoint/schemas";

/** The environment as a participant: its sessions are episodes. */
export type Environment = Participant<EpisodeState, EnvironmentEvent>;
