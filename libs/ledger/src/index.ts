/** Model calls of an episode: which were answered, what of that the caller has, and in what lineage. Pure. */
export * from "./ledger.ts";
export * from "./ledger-kind.ts";
