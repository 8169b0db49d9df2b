/** The conformance kit: which promises of the contract a participant holds. */
import { AgentPlayer } from "./agent-player.ts";
import type { ContractPromise } from "./contract-promise.ts";
import { EnvironmentPlayer } from "./environment-player.ts";
import { Examination } from "./examination.ts";
import { ModelPlayer } from "./model-player.ts";
import { PlayedModel } from "./played-model.ts";
import type { Player } from "./player.ts";
import { promises } from "./promises.ts";
import { ResourcesPlayer } from "./resources-player.ts";
import { ConformanceRig, type RigOptions } from "./rig.ts";
import { Patience } from "./waiting.ts";

export interface Finding {
  readonly says: string;
  readonly holds: boolean;
  /** What was seen instead, where it does not hold. */
  readonly why: string;
}

export interface ExamineOptions extends Omit<RigOptions, "modelUrl"> {
  /** Which promises to look at, by what they say. Default: all. */
  readonly only?: (says: string) => boolean;
}

/**
 * Examines a participant in a run that nobody else takes part in, and whose coordinator serves. Starts and kills its process
 * as often as it has to.
 *
 * @param found called with each finding as it is made
 */
export async function examine(
  options: ExamineOptions,
  found: (finding: Finding) => void = () => {},
): Promise<readonly Finding[]> {
  const model = options.target.role === "agent" ? await playedModel(options) : undefined;
  const rig = await ConformanceRig.open({ ...options, ...(model !== undefined && { modelUrl: model.url }) });
  const player = await playerOf(rig, model);
  const examination = new Examination(rig, player);
  const findings: Finding[] = [];
  try {
    const mode = await examination.mode();
    const asked = promises.filter(({ says, of }) => (of?.includes(mode) ?? true) && (options.only?.(says) ?? true));
    for (const promise of asked) {
      const finding = await examined(examination, promise);
      findings.push(finding);
      found(finding);
    }
  } finally {
    await rig.stop();
    await player.stop?.();
  }
  return findings;
}

async function examined(examination: Examination, { says, check }: ContractPromise): Promise<Finding> {
  try {
    await check(examination);
    return { says, holds: true, why: "" };
  } catch (error) {
    await examination.rig.letGo();
    return { says, holds: false, why: error instanceof Error ? error.message : String(error) };
  }
}

function playedModel({ target, patienceMs = 30_000 }: ExamineOptions): Promise<PlayedModel> {
  const { name, arguments: input } = target.workload.tool ?? { name: "none", arguments: {} };
  const says = (turn: number) => {
    const call = { id: `call-${turn}`, type: "function", function: { name, arguments: JSON.stringify(input) } };
    return { role: "assistant", content: null, tool_calls: [call] };
  };
  return PlayedModel.start({ says, patience: new Patience(patienceMs) });
}

async function playerOf(rig: ConformanceRig, model: PlayedModel | undefined): Promise<Player> {
  const { role } = rig.options.target;
  if (model !== undefined) return AgentPlayer.start(rig, model);
  if (role === "environment") return EnvironmentPlayer.start(rig);
  return role === "model" ? new ModelPlayer(rig) : new ResourcesPlayer(rig);
}
