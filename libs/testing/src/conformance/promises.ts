/** The promises of the contract that can be seen from outside, each as a check that says what was seen instead. */
import type { StoredMessage } from "@holdpoint/eventsourcing";
import type { Episode, Mode, Outcome } from "@holdpoint/schemas";
import type { Examination } from "./examination.ts";
import { must } from "./waiting.ts";

export interface ContractPromise {
  /** A sentence that can be false. */
  readonly says: string;
  /** Of which modes. Default: all. */
  readonly of?: readonly Mode[];
  /** @throws PromiseBroken where it is */
  readonly check: (examination: Examination) => Promise<void>;
}

function textOf(message: StoredMessage | undefined): string {
  return message === undefined ? "" : new TextDecoder().decode(message.body);
}

function same(one: readonly string[], other: readonly string[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function failure(outcome: Outcome): string {
  return outcome.ok ? "succeeded" : `${outcome.problem.code}: ${outcome.problem.message}`;
}

/** The modes whose sessions are in checkpoints. */
const held: readonly Mode[] = ["exported", "stateless"];

export const promises: readonly ContractPromise[] = [
  {
    says: "its first word is its announcement, with a mode",
    check: async (examination) => void (await examination.mode()),
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
    says: "what it has answered is in its log",
    check: async ({ rig, player }) => {
      const episode = { rollout: rig.newName("r"), attempt: 0 };
      const answer = await player.fresh(episode);
      const last = await rig.options.log.lastOn(rig.subject);
      must(answer.ok, `new work was refused: ${JSON.stringify(answer)}`);
      must(textOf(last).includes(episode.rollout), `it has answered ${episode.rollout}, and has not said so`);
      await player.close?.(episode);
    },
  },
  {
    says: "work that was done is answered again as before, not done again",
    check: async (examination) => {
      const { player, rig } = examination;
      const episode = await examination.session(0);
      const outcomes = [await player.advance(episode), await player.advance(episode)];
      const again = (await player.recall(episode)).slice(-2);
      must(again.length === 0 || same(again, outcomes), `first ${outcomes.join(", ")}; again ${again.join(", ")}`);
      if (player.doneAs === undefined) return;
      const done = (await rig.said()).filter(
        ({ event }) => event.type === player.doneAs && isAbout(event.data, episode),
      );
      const turns = new Set(done.map(({ event }) => event.data["turn"]));
      must(
        turns.size === done.length,
        `${player.doneAs} stands ${done.length} times in its log for ${turns.size} turns`,
      );
    },
  },
  {
    says: "a seed that is repeated is harmless, and another one is a conflict",
    check: async (examination) => {
      const { player, rig } = examination;
      if (player.reseed === undefined || rig.options.target.workload.otherSeed === undefined) return;
      const episode = await examination.session();
      const again = await player.reseed(episode, false);
      must(again.ok, `the same seed again met ${JSON.stringify(again)}`);
      const other = await player.reseed(episode, true);
      must(!other.ok && other.code === "session_conflict", `another seed met ${JSON.stringify(other)}`);
      await player.advance(episode);
    },
  },
  {
    says: "a session is closed also while a checkpoint is open, and again without harm",
    of: held,
    check: async (examination) => {
      const { player, rig } = examination;
      if (player.close === undefined) return;
      const episode = await examination.session();
      examination.agree();
      const checkpointId = rig.newName("c");
      await rig.succeed({ operation: "prepare", checkpointId });
      for (const when of ["", " again"]) {
        const answer = await player.close(episode);
        const isOver = answer.ok || answer.code === "not_found";
        must(isOver, `close${when} met ${JSON.stringify(answer)}`);
      }
      examination.drop(episode);
      await rig.succeed({ operation: "resume", checkpointId });
    },
  },
  {
    says: "no checkpoint waits for it or holds anything of it, and its episodes are named as restarts",
    of: ["restart_only"],
    check: async (examination) => {
      const { rig } = examination;
      const episode = await examination.session();
      examination.agree();
      const checkpointId = rig.newName("c");
      const { restarts = [] } = await rig.succeed({ operation: "prepare", checkpointId });
      must(
        restarts.some((one) => isAbout(one, episode)),
        `prepare names as restarts ${JSON.stringify(restarts)}`,
      );
      await rig.succeed({ operation: "commit", checkpointId });
      await examination.player.advance(episode);
      await rig.succeed({ operation: "resume", checkpointId });
    },
  },
  {
    says: "no token that it hands out stands anywhere in the stream",
    check: async ({ player, rig }) => {
      const { secrets = [] } = player;
      const { log } = rig.options;
      await log.read({ upTo: await log.lastSequence() }, (message) => {
        const isTold = secrets.some((secret) => textOf(message).includes(secret));
        must(!isTold, `message ${message.sequence} holds a token`);
      });
    },
  },
  {
    says: "while a checkpoint is open, new work waits or is refused, and goes on after",
    of: held,
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
    of: held,
    check: async (examination) => {
      const { rig, player } = examination;
      const episode = await examination.session();
      examination.agree();
      const checkpointId = rig.newName("c");
      await rig.succeed({ operation: "prepare", checkpointId });
      await rig.succeed({ operation: "capture", checkpointId });
      const captured = await rig.lastSaid();
      const work = [player.advance(episode), player.fresh({ rollout: rig.newName("r"), attempt: 0 })];
      await player.malformed[0]?.send(); // comes after them, and is answered
      await rig.command({ operation: "status" });
      const said = await rig.said();
      const about = said.filter(({ sequence, event }) => sequence > captured && isAbout(event.data, episode));
      must(about.length === 0, `it said ${about.map(({ event }) => event.type).join(", ")} of a captured session`);
      await rig.succeed({ operation: "resume", checkpointId });
      await Promise.all(work);
    },
  },
  {
    says: "a checkpoint holds its sessions, and they go on",
    of: held,
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
    of: held,
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
    of: held,
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
    of: held,
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
    of: held,
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
