/** The stages, step modes, budgets and restarts of an episode. Pure. */
export * from "./budget.ts";
export * from "./episode-kind.ts";
export * from "./steps.ts";
