import type { LedgerRow } from "@holdpoint/ledger";
import { createHash } from "node:crypto";

export function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The digest of the request that is asked in `turn`. */
export function request(turn: number): string {
  return hash(`request ${turn}`);
}

/** The row of `turn`, as if it had been asked in `attempt`. */
export function row(turn: number, attempt = 0): LedgerRow {
  const text = `response ${turn}`;
  return {
    turn,
    attempt,
    request: request(turn),
    response: { digest: hash(text), bytes: text.length, text },
    staging: hash(`staging ${turn}`),
    policyVersion: 3,
    promptTokens: 10 + turn,
    completionTokens: 2,
  };
}
