import type { Ledger, LedgerEvent } from "@holdpoint/ledger";
import type { Participant } from "../participant.ts";

/** The model server as a participant: its sessions are the ledgers of episodes. */
export type Model = Participant<Ledger, LedgerEvent>;
