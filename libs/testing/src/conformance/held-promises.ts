/** What is promised of sessions that checkpoints hold. */
import type { Outcome } from "@holdpoint/schemas";
import { type ContractPromise, held, isAbout, isSame } from "./contract-promise.ts";
import { must } from "./waiting.ts";

export const heldPromises: readonly ContractPromise[] = [
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
        must(isSame(found, atCut), `at the cut ${atCut.join(", ")}; restored ${found.join(", ")}`);
        await player.advance(to);
        episode = to;
      }
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
];

function failure(outcome: Outcome): string {
  return outcome.ok ? "succeeded" : `${outcome.problem.code}: ${outcome.problem.message}`;
}
