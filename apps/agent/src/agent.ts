import type { Participant } from "@holdpoint/participant";
import type { AgentEvent } from "@holdpoint/schemas";
import type { Conversation } from "./conversation.ts";

/** The agent as a participant: its sessions are conversations. */
export type Agent = Participant<Conversation, AgentEvent>;
