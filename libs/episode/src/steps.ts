/** The steps of an episode: which comes next, how a checkpoint treats it, and what a restore has to do again before it. */
import type { SeedTerms, Stage, StepMode } from "@holdpoint/schemas";
import type { EpisodeState } from "./episode-kind.ts";

/** A step to take: its bookmark is `stage`. */
export interface Step {
  readonly stage: Stage;
  readonly mode: StepMode;
  /** Whether the resources server, then the agent, are seeded inside the step before its work: a re-seed. */
  readonly reseeds: boolean;
}

/** Of a class that says nothing: nothing has to be done again, and verify is waited for. */
export const silentTerms: SeedTerms = { verify: "wait", rebinds: false, sandboxLent: false, grantsBound: false };

/** The step that an episode takes from where its log says it stands. */
export function nextStep({
  stage,
  terms,
  isReplacement,
}: Pick<EpisodeState, "stage" | "terms" | "isReplacement">): Step {
  const current = stage === "none" ? "seed" : stage;
  const mode = modeOf(current, terms);
  return { stage: current, mode, reseeds: isReplacement && isReseededAt(current, terms) };
}

/** While it runs, a checkpoint waits for a `wait` step; a `replay` step counts as parked at the boundary before it. */
function modeOf(stage: Stage, terms: SeedTerms | null): StepMode {
  if (stage === "close_agent") return "wait";
  return stage === "verify" ? (terms ?? silentTerms).verify : "replay";
}

/** Only what the attempt's own sandbox or grants are needed for is bound again, and nothing at verify or return. */
function isReseededAt(stage: Stage, terms: SeedTerms | null): boolean {
  const { sandboxLent, grantsBound } = terms ?? silentTerms;
  return (stage === "invoke_agent" || stage === "close_agent") && (sandboxLent || grantsBound);
}

/** Terms as one server says them: those that it has nothing to say about are left out. */
type SaidTerms = { readonly [Name in keyof SeedTerms]?: SeedTerms[Name] | undefined };

/** The terms of both seeds together: what either asks for. */
export function joinTerms(resources: SaidTerms, agent: SaidTerms): SeedTerms {
  return {
    verify: resources.verify ?? silentTerms.verify,
    rebinds: agent.rebinds ?? false,
    sandboxLent: resources.sandboxLent ?? false,
    grantsBound: resources.grantsBound === true || agent.grantsBound === true,
  };
}

/** Why an episode of these terms cannot be captured; undefined where it can. Its grants would bind to an attempt that is gone. */
export function restartOf({ grantsBound, rebinds }: SeedTerms): string | undefined {
  return grantsBound && !rebinds ? "its grants are bound to the attempt, and its agent does not re-bind" : undefined;
}
