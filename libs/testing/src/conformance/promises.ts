/** The promises of the contract that can be seen from outside, each as a check that says what was seen instead. */
import type { Episode, Outcome, ReceiptEntry } from "@holdpoint/schemas";
import type { Player } from "./player.ts";
import type { ConformanceRig } from "./rig.ts";
import { must } from "./waiting.ts";

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

  async killAndStart(): Promise<void> {
    await this.rig.kill();
    await this.rig.start();
  }
}

export interface ContractPromise {
  /** A sentence that can be false. */
  readonly says: string;
  /** @throws PromiseBroken where it is */
  readonly check: (examination: Examination) => Promise<void>;
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function failure(outcome: Outcome): string {
  return outcome.ok ? "succeeded" : `${outcome.problem.code}: ${outcome.problem.message}`;
}

export const promises: readonly ContractPromise[] = [
  {
    says: "its first word is its announcement, with a mode",
    check: async ({ rig }) => {
      const [first] = await rig.said();
      must(first?.event.type === "participant.announced", `its first event is ${first?.event.type ?? "missing"}`);
    },
  },
  {
    says: "malformed requests get a typed error, and it serves on",
    check: async (examination) => {
      for (const { what, code, send } of examination.player.malformed) {
        const answer = await send();
        must(!answer.ok && answer.code === code, `${what} met ${JSON.stringify(answer)}; expected ${code}`);
      }
      examination.drop(await examination.session());
    },
  },
  {
    says: "what it has answered is in its log before",
    check: async (examination) => {
      const before = await examination.rig.lastSaid();
      await examination.session();
      must((await examination.rig.lastSaid()) > before, "it has answered, and its log has no more than before");
    },
  },
  {
    says: "work that was done is answered again as before, not done again",
    check: async (examination) => {
      const episode = await examination.session(0);
      const outcomes = [await examination.player.advance(episode), await examination.player.advance(episode)];
      const again = (await examination.player.recall(episode)).slice(-2);
      must(again.length === 0 || same(again, outcomes), `first ${outcomes.join(", ")}; again ${again.join(", ")}`);
    },
  },
  {
    says: "while a checkpoint is open, new work waits or is refused, and goes on after",
    check: async (examination) => {
      const { rig, player } = examination;
      await examination.session();
      examination.agree();
      const checkpointId = rig.newName("c");
      await rig.succeed({ operation: "prepare", checkpointId });
      const asked = { rollout: rig.newName("r"), attempt: 0 };
      let answered = "waits";
      const ask = async () => {
        const answer = await player.fresh(asked);
        answered = answer.ok ? "was done" : answer.code;
      };
      const fresh = ask();
      if (player.whileClosed !== "waits") await fresh;
      await rig.succeed({ operation: "capture", checkpointId });
      must(answered === player.whileClosed, `new work ${answered}; expected ${player.whileClosed}`);
      await rig.succeed({ operation: "resume", checkpointId });
      await fresh;
      must(player.whileClosed !== "waits" || answered === "was done", `after the resume it met ${answered}`);
    },
  },
  {
    says: "from its captured answer until the resume it says nothing of what was captured",
    check: async (examination) => {
      const { rig, player } = examination;
      const episode = await examination.session();
      examination.agree();
      const checkpointId = rig.newName("c");
      await rig.succeed({ operation: "prepare", checkpointId });
      await rig.succeed({ operation: "capture", checkpointId });
      const captured = await rig.lastSaid();
      const work = player.fresh({ rollout: rig.newName("r"), attempt: 0 });
      await rig.command({ operation: "status" });
      const said = await rig.said();
      const about = said.filter(({ sequence, event }) => sequence > captured && isAbout(event.data, episode));
      must(about.length === 0, `it said ${about.map(({ event }) => event.type).join(", ")} of a captured session`);
      await rig.succeed({ operation: "resume", checkpointId });
      await work;
    },
  },
  {
    says: "a checkpoint holds its sessions, and they go on",
    check: async (examination) => {
      const episode = await examination.session();
      const id = await examination.checkpoint();
      const control = await examination.rig.control();
      const committed = control.find(
        (event) => event.type === "checkpoint.committed" && event.data.checkpointId === id,
      );
      const { role } = examination.rig.options.target;
      const holdings = committed?.type === "checkpoint.committed" ? committed.data.holdings : [];
      const mine = holdings.find((holding) => holding.role === role);
      must((mine?.sessions ?? 0) > 0, `the checkpoint holds nothing of it: ${JSON.stringify(mine)}`);
      await examination.player.advance(episode);
    },
  },
  {
    says: "killed and started again it goes on under the same attempt, with what was done",
    check: async (examination) => {
      const episode = await examination.session(2);
      const before = await examination.player.recall(episode);
      await examination.killAndStart();
      const after = await examination.player.recall(episode);
      must(same(before, after), `before ${before.join(", ")}; after ${after.join(", ")}`);
      await examination.player.advance(episode);
    },
  },
  {
    says: "killed while a checkpoint is open its successor is closed, and the checkpoint is taken",
    check: async (examination) => {
      const { rig } = examination;
      const episode = await examination.session();
      examination.agree();
      const checkpointId = rig.newName("c");
      await rig.succeed({ operation: "prepare", checkpointId });
      await examination.killAndStart();
      await rig.succeed({ operation: "prepare", checkpointId });
      await rig.succeed({ operation: "commit", checkpointId });
      await rig.succeed({ operation: "resume", checkpointId });
      await examination.player.advance(episode);
    },
  },
  {
    says: "a restore goes on from the cut, also in a process that comes after a crash, also twice",
    check: async (examination) => {
      const { player, rig } = examination;
      let episode = await examination.session(1);
      const atCut = await player.recall(episode);
      const source = await examination.checkpoint();
      await player.advance(episode);
      const cut = { ...episode };
      for (const _ of ["once", "twice"]) {
        await rig.kill();
        await rig.start();
        await examination.retire(episode);
        const [to, entry] = await examination.restore(cut, source, atCut.length);
        must(entry.found === entry.expected, `it found ${entry.found}, expected was ${entry.expected}`);
        must(to.attempt === episode.attempt + 1, `attempt ${to.attempt} goes on; expected ${episode.attempt + 1}`);
        const found = await player.recall(to);
        must(same(found, atCut), `at the cut ${atCut.join(", ")}; restored ${found.join(", ")}`);
        await player.advance(to);
        episode = to;
      }
    },
  },
  {
    says: "a retired attempt is refused as stale, also by the process that comes after a crash",
    check: async (examination) => {
      const episode = await examination.session();
      await examination.retire(episode);
      for (const when of ["then", "after a crash"]) {
        const answer = await examination.player.probe(episode);
        must(!answer.ok && answer.code === "stale_attempt", `${when} it met ${JSON.stringify(answer)}`);
        if (when === "then") await examination.killAndStart();
      }
      await examination.rig.succeed({ operation: "forget", rollouts: [episode.rollout] });
    },
  },
  {
    says: "a release is answered, and spoils nothing that is live",
    check: async (examination) => {
      const { rig } = examination;
      const episode = await examination.session();
      const checkpointId = await examination.checkpoint();
      const outcome = await rig.command({ operation: "release", checkpointId, kept: [checkpointId] });
      must(outcome.ok, `the release ${failure(outcome)}`);
      await examination.player.advance(episode);
    },
  },
  {
    says: "a second process of its name takes over, and the first says nothing any more",
    check: async (examination) => {
      const { rig, player } = examination;
      const episode = await examination.session();
      await rig.start();
      await player.advance(episode);
      await examination.checkpoint();
      const said = await rig.said();
      const last = said.filter(({ event }) => event.type === "participant.announced").at(-1);
      const late = said.filter(({ sequence, incarnation }) => {
        return sequence > (last?.sequence ?? 0) && incarnation !== last?.incarnation;
      });
      must(late.length === 0, `the first one still said ${late.map(({ event }) => event.type).join(", ")}`);
    },
  },
  {
    says: "an episode that ends is one result",
    check: async (examination) => {
      if (examination.player.finish === undefined) return;
      const episode = await examination.session();
      examination.drop(episode);
      const count = await examination.player.finish(episode);
      must(count === 1, `there are ${count} results`);
    },
  },
];

function isAbout(data: object, { rollout, attempt }: Episode): boolean {
  const about: { rollout?: unknown; attempt?: unknown } = data;
  return about.rollout === rollout && about.attempt === attempt;
}
