/** What the checks of the promises do with a participant, and what they know of its sessions. */
import { type Episode, Mode, type ReceiptEntry } from "@holdpoint/schemas";
import * as z from "zod";
import type { Player } from "./player.ts";
import type { ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

const Announced = z.object({ type: z.literal("participant.announced"), data: z.object({ mode: Mode }) });

/** The participant, who works with it, and the sessions that were begun so far and not ended. */
export class Examination {
  readonly rig: ConformanceRig;
  readonly player: Player;
  readonly #live: Episode[] = [];

  constructor(rig: ConformanceRig, player: Player) {
    this.rig = rig;
    this.player = player;
  }

  /** A session of a new rollout after `units` units of work. */
  async session(units = 1): Promise<Episode> {
    const episode = { rollout: this.rig.newName("r"), attempt: 0 };
    await this.player.begin(episode);
    this.#live.push(episode);
    for (let unit = 0; unit < units; unit++) await this.player.advance(episode);
    return episode;
  }

  /** Everybody else says the same of the sessions as the participant should. */
  agree(): void {
    this.rig.hold(this.#live, (role, episode) => this.player.edgesOf(role, episode));
  }

  /** A checkpoint of everything that is live, and sessions that go on. @returns its id */
  async checkpoint(): Promise<string> {
    const checkpointId = this.rig.newName("c");
    this.agree();
    await this.rig.succeed({ operation: "checkpoint", checkpointId });
    return checkpointId;
  }

  /** Marks the rollout's attempts, everywhere. */
  async retire(episode: Episode): Promise<void> {
    this.drop(episode);
    await this.rig.succeed({ operation: "retire", rollouts: [episode] });
  }

  /** The next attempt of the session goes on from `source`, as it was there after `units` units. */
  async restore(episode: Episode, source: string, units: number): Promise<readonly [Episode, ReceiptEntry]> {
    const checkpointId = this.rig.newName("x");
    const scope = [episode.rollout];
    const { receipt = [] } = await this.rig.succeed({ operation: "restore", checkpointId, source, scope });
    const { role } = this.rig.options.target;
    const entry = receipt.find((one) => one.role === role);
    const to = entry?.continued.find(({ rollout }) => rollout === episode.rollout);
    must(to !== undefined, `the restore did not continue ${episode.rollout}: ${JSON.stringify(entry)}`);
    await this.rig.succeed({ operation: "resume", checkpointId });
    if (entry === undefined || to === undefined) throw new Error("unreachable");
    await this.player.claim(episode, to, units);
    this.#live.push(to);
    return [to, entry];
  }

  drop({ rollout }: Episode): void {
    for (const [index, live] of [...this.#live.entries()].toReversed()) {
      if (live.rollout === rollout) this.#live.splice(index, 1);
    }
  }

  /** As its first word has it. */
  async mode(): Promise<Mode> {
    const [first] = await this.rig.said();
    const announced = Announced.safeParse(first?.event);
    must(announced.success, `its first event is ${first?.event.type ?? "missing"}, and no announcement with a mode`);
    return announced.data?.data.mode ?? "restart_only";
  }

  async killAndStart(): Promise<void> {
    await this.rig.kill();
    await this.rig.start();
  }
}
