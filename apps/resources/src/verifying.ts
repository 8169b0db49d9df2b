/**
 * The verdict: the package's own tests, as shipped, on the agent's files.
 *
 * 1. The agent's files are taken out of its sandbox once and judged in a fresh one, so that a verify that was interrupted can run
 *    again and gives the same.
 * 2. Of the agent nothing counts but the content of files that the package was shipped with: no test, no manifest, nothing that
 *    was added beside them.
 * 3. A verdict in the log is final.
 */
import { HoldpointError } from "@holdpoint/errors";
import { formatReport, rewardOf } from "@holdpoint/repair";
import type { Content, Episode } from "@holdpoint/schemas";
import type { Bench } from "./bench.ts";
import type { InstalledPackage } from "./installed-package.ts";
import { cut, maxAnswerBytes } from "./tools.ts";
import { atBench, newId, sessionIn, targetOf, type Workshop } from "./workshop.ts";

/** What verify says, as JSON in `verify.finished`. */
interface Verdict {
  /** Of [0, 1]. */
  readonly reward: number;
  readonly passed: number;
  readonly failed: number;
  /** null: the run did not come to its end. */
  readonly planned: number | null;
  /** Of the agent's sandbox: paths, permissions and contents. */
  readonly treeDigest: string;
  readonly report: string;
}

/** @throws HoldpointError `invalid_checkpoint_state` where the sandbox was lost, `stale_attempt` where the session ends meanwhile */
export async function verify(workshop: Workshop, { rollout, attempt }: Episode): Promise<Content> {
  const episode = { rollout, attempt };
  const verdict = workshop.participant.sessions.get(episode)?.state.verdict ?? null;
  if (verdict !== null) return verdict;
  return atBench(workshop, episode, (bench) => bench.join("verify", () => conclude(workshop, episode, bench)));
}

async function conclude(workshop: Workshop, episode: Episode, bench: Bench): Promise<Content> {
  const execution = newId("verify", episode);
  const witness = { ...episode, execution, turn: null, index: null, name: "verify" };
  const found = await workshop.executions.during(witness, () => judge(workshop, episode, bench));
  const content = await workshop.participant.contents.write(JSON.stringify(found));
  await workshop.participant.record({ type: "verify.finished", data: { ...episode, execution, verdict: content } });
  return content;
}

async function judge(workshop: Workshop, episode: Episode, bench: Bench): Promise<Verdict> {
  const target = await targetOf(workshop, sessionIn(workshop, episode).state);
  const { expectedTests } = target.spec;
  const judged = newId("judge", episode);
  try {
    const treeDigest = await bench.run(() => takeOut(workshop, episode, { target, judged }));
    const report = await workshop.tests.run(judged, target, bench.signal);
    const { passed, failed, planned } = report;
    const summary = cut(formatReport(report, expectedTests), maxAnswerBytes);
    return { reward: rewardOf(report, expectedTests), passed, failed, planned, treeDigest, report: summary };
  } finally {
    await workshop.provider.delete(judged);
  }
}

interface Court {
  readonly target: InstalledPackage;
  /** The id of the fresh sandbox. */
  readonly judged: string;
}

/** Makes the sandbox `judged`, with the agent's files in it. @returns the digest of the agent's sandbox */
async function takeOut(workshop: Workshop, episode: Episode, { target, judged }: Court): Promise<string> {
  const { provider } = workshop;
  const { sandbox } = sessionIn(workshop, episode);
  const digest = await digestOf(workshop, episode, sandbox);
  await provider.create(judged, target.home);
  for (const { path, type } of await provider.listFiles(judged)) {
    if (type !== "file" || isOurs(target, path)) continue;
    await provider.writeFile(judged, path, await contentOf(workshop, sandbox, path));
  }
  return digest;
}

async function digestOf({ provider }: Workshop, episode: Episode, sandbox: string): Promise<string> {
  const snapshot = newId("look", episode);
  try {
    return (await provider.snapshot(sandbox, snapshot)).digest;
  } finally {
    await provider.deleteSnapshot(snapshot);
  }
}

/** Whether a shipped file is taken as it was shipped: tests and all that lies beside them, and the manifest. */
function isOurs({ spec }: InstalledPackage, path: string): boolean {
  const top = topOf(path);
  return path === "package.json" || top === "node_modules" || spec.testFiles.some((test) => topOf(test) === top);
}

function topOf(path: string): string {
  return path.split("/", 1)[0] ?? path;
}

/** The agent's version of a file; empty where it removed it, or put something else in its place. */
async function contentOf({ provider }: Workshop, sandbox: string, path: string): Promise<Uint8Array> {
  try {
    return await provider.readFile(sandbox, path);
  } catch (error) {
    const isGone = HoldpointError.is(error, "not_found") || HoldpointError.is(error, "invalid_request");
    if (!isGone || (await provider.status(sandbox)).state === "absent") throw error;
    return new Uint8Array();
  }
}
