/**
 * The trainer's folder. Every file is there whole, as it was or as it is to be, whatever dies while it is written.
 *
 *   state.json        where the trainer stands
 *   ckpt-<id>.json    where it stood at a checkpoint that was committed
 *   final.json        what came of the run, once it has ended
 */
import { HoldpointError } from "@holdpoint/errors";
import { parseJson } from "@holdpoint/eventsourcing";
import { weightsDigest } from "@holdpoint/repair";
import { CheckpointId, Digest } from "@holdpoint/schemas";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { TrainedGroup, TrainerState } from "./state.ts";

/** The weights are named by their digest too, so that a file that was tampered with or torn is noticed. */
const Saved = z
  .object({ state: TrainerState, weightsDigest: Digest })
  .refine(({ state, weightsDigest: digest }) => weightsDigest(state.weights) === digest, "the weights are damaged");

export const CheckpointFile = z.object({
  checkpointId: CheckpointId,
  /** The sequence up to which the checkpoint holds; the state has consumed nothing after it. */
  cut: z.int().nonnegative(),
  ...Saved.shape,
});
export type CheckpointFile = z.infer<typeof CheckpointFile>;

export const Final = z.object({
  weightsDigest: Digest,
  weights: z.array(z.number()),
  version: z.int().nonnegative(),
  groups: z.array(TrainedGroup.omit({ cursor: true, policy: true })),
});
export type Final = z.infer<typeof Final>;

const stateFile = "state.json";
const finalFile = "final.json";

export class StateDir {
  readonly #path: string;
  /** Unique for this life of the process: another one may be dying beside it. */
  readonly #temporary: string;

  private constructor(path: string, incarnation: string) {
    this.#path = path;
    this.#temporary = join(path, `${incarnation}.tmp`);
  }

  /** Makes the folder where it is missing. */
  static async open(path: string, incarnation: string): Promise<StateDir> {
    await mkdir(path, { recursive: true });
    return new StateDir(path, incarnation);
  }

  /**
   * The saved state; undefined before there was one.
   *
   * @throws HoldpointError `invalid_checkpoint_state` where the file is damaged
   */
  async load(): Promise<TrainerState | undefined> {
    return (await this.#read(stateFile, Saved))?.state;
  }

  async save(state: TrainerState): Promise<void> {
    await this.#write(stateFile, { state, weightsDigest: weightsDigest(state.weights) });
  }

  async saveCheckpoint({ checkpointId, cut, state }: Omit<CheckpointFile, "weightsDigest">): Promise<void> {
    const digest = weightsDigest(state.weights);
    await this.#write(checkpointName(checkpointId), { checkpointId, cut, state, weightsDigest: digest });
  }

  /** @throws HoldpointError `invalid_checkpoint_state` where the file is missing or damaged */
  async checkpoint(checkpointId: string): Promise<CheckpointFile> {
    const file = await this.#read(checkpointName(checkpointId), CheckpointFile);
    if (file?.checkpointId === checkpointId && weightsDigest(file.state.weights) === file.weightsDigest) return file;
    const path = join(this.#path, checkpointName(checkpointId));
    const what = file === undefined ? "is missing" : "is damaged";
    throw new HoldpointError("invalid_checkpoint_state", `${path} ${what}: go back to another checkpoint`);
  }

  /** The checkpoints that have a file, in no order. */
  async checkpoints(): Promise<readonly string[]> {
    const names = await readdir(this.#path);
    return names.flatMap((name) => /^ckpt-(.+)\.json$/.exec(name)?.[1] ?? []);
  }

  async removeCheckpoint(checkpointId: string): Promise<void> {
    await rm(join(this.#path, checkpointName(checkpointId)), { force: true });
  }

  async final(): Promise<Final | undefined> {
    return this.#read(finalFile, Final);
  }

  /** What processes that were killed have left half written goes too. */
  async saveFinal(final: Final): Promise<void> {
    await this.#write(finalFile, final);
    const names = await readdir(this.#path);
    for (const name of names) if (name.endsWith(".tmp")) await rm(join(this.#path, name), { force: true });
  }

  async removeFinal(): Promise<void> {
    await rm(join(this.#path, finalFile), { force: true });
  }

  async #read<T>(name: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const path = join(this.#path, name);
    const bytes = await readFile(path).catch((error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    });
    if (bytes === undefined) return undefined;
    const json = parseJson(bytes);
    const parsed = schema.safeParse(json.ok ? json.value : undefined);
    if (parsed.success) return parsed.data;
    const why = json.ok ? z.prettifyError(parsed.error) : json.why;
    throw new HoldpointError("invalid_checkpoint_state", `${path} is damaged: ${why}`);
  }

  /** Written beside, forced to the disk, put in place, and the place forced to the disk. One write at a time. */
  async #write(name: string, value: object): Promise<void> {
    const file = await open(this.#temporary, "w");
    try {
      await file.writeFile(`${JSON.stringify(value, undefined, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(this.#temporary, join(this.#path, name));
    const folder = await open(this.#path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }
}

function checkpointName(checkpointId: string): string {
  return `ckpt-${checkpointId}.json`;
}
