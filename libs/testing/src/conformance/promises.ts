/** The promises of the contract that can be seen from outside, each as a check that says what was seen instead. */
import type { StoredMessage } from "@holdpoint/eventsourcing";
import { type ContractPromise, isAbout, isSame } from "./contract-promise.ts";
import { heldPromises } from "./held-promises.ts";
import { must } from "./waiting.ts";

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
      must(again.length === 0 || isSame(again, outcomes), `first ${outcomes.join(", ")}; again ${again.join(", ")}`);
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
    says: "killed and started again it goes on under the same attempt, with what was done",
    check: async (examination) => {
      const episode = await examination.session(2);
      const before = await examination.player.recall(episode);
      await examination.killAndStart();
      const after = await examination.player.recall(episode);
      must(isSame(before, after), `before ${before.join(", ")}; after ${after.join(", ")}`);
      await examination.player.advance(episode);
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
    says: "an episode that ends is one result",
    check: async (examination) => {
      if (examination.player.finish === undefined) return;
      const episode = await examination.session();
      examination.drop(episode);
      const count = await examination.player.finish(episode);
      must(count === 1, `there are ${count} results`);
    },
  },
  ...heldPromises,
];

function textOf(message: StoredMessage | undefined): string {
  return message === undefined ? "" : new TextDecoder().decode(message.body);
}
