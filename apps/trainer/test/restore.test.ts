/** Going back to a checkpoint after everything has died: the trainer's process against a real broker. */
import { type RunningBroker, startBroker } from "@holdpoint/broker";
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Condition, saying, type Settings, StubRun, type StubRunOptions } from "./stub/run.ts";

let broker: RunningBroker;
/** Of a run to which nothing happened. */
let undisturbed: string;
const running: StubRun[] = [];
const planned = ["g0", "g1", "g2", "g3"];
const back = { HOLDPOINT_RESTORE: "latest" };

beforeAll(async () => {
  broker = await startBroker();
  undisturbed = (await (await start()).finish()).weightsDigest;
});
afterEach(async () => {
  for (const run of running.splice(0)) await run.stop();
});
afterAll(async () => {
  await broker.stop();
});

async function start(options: StubRunOptions = {}): Promise<StubRun> {
  const run = await StubRun.start(broker, { turnMs: 100, ...options });
  running.push(run);
  return run;
}

/** Everything dies once a checkpoint is complete that holds the four episodes of the first two groups. */
async function startAndLoseAll(): Promise<StubRun> {
  const run = await start({ heldAfter: 2 });
  await loseAll(run, (message) => published(message) && run.coordinator.newestHolds === 4);
  return run;
}

/** Everything dies at `point`. */
async function loseAll(run: StubRun, point: Condition, settings: Settings = {}): Promise<void> {
  await run.killAt(point, settings, true);
}

const published = saying("log.trainer", '"checkpointId":"trainer-c');
const published1 = saying("log.trainer", '"checkpointId":"trainer-c1"');
const trained = (group: string) => saying("log.trainer", `"group":"${group}"`);

test.each([
  ["after a checkpoint", [published]],
  ["after a group was trained", [trained("g0")]],
  ["twice", [trained("g0"), trained("g2")]],
  ["late", [trained("g3")]],
])(
  "[F2] [L12] everything dies %s: from the checkpoint on, each group is trained once, to the same weights",
  async (_, points) => {
    const run = await start();
    let settings = {};
    for (const point of points) {
      await loseAll(run, point, settings);
      settings = back;
    }
    const { groups, weightsDigest } = await run.finish(back);
    expect(groups.map(({ group }) => group)).toEqual(planned);
    expect(weightsDigest).toBe(undisturbed);
  },
);

test.each([
  ["retiring what it had dispatched", saying("cmd.retire")],
  ["restoring", saying("cmd.restore")],
  ["resuming after the restore", saying("cmd.resume")],
])("[F2] killed while %s it goes back once more, and nothing is lost", async (_, point) => {
  const run = await startAndLoseAll();
  await run.killAt(point, back);
  run.episodes.letGo();
  expect((await run.finish(back)).weightsDigest).toBe(undisturbed);
});

test("killed after a restore stands it goes on in place, with the restored attempts", async () => {
  const run = await startAndLoseAll();
  await run.killAt(saying("log.environment", "episode.opened"), back);
  run.episodes.letGo();
  expect((await run.finish()).weightsDigest).toBe(undisturbed);
});

test("[A12] [L7] continuations are dispatched first, at exactly the attempt that was installed", async () => {
  const run = await startAndLoseAll();
  run.episodes.letGo();
  const before = run.episodes.dispatched.length;
  const { weightsDigest } = await run.finish(back);
  const installed = await run.installed();
  expect(installed).toHaveLength(4);
  expect(run.episodes.dispatched.slice(before, before + installed.length).toSorted()).toEqual(installed.toSorted());
  expect(run.episodes.dispatched.filter((episode) => installed.includes(episode))).toHaveLength(installed.length);
  expect((await run.commanded()).filter((operation) => operation === "retire")).toHaveLength(1); // none was incomplete
  expect(weightsDigest).toBe(undisturbed);
});

test("a damaged checkpoint file is passed over for the one before it", async () => {
  const run = await start();
  await loseAll(run, saying("log.trainer", '"checkpointId":"trainer-c2"'));
  truncateSync(join(run.stateDir, "ckpt-trainer-c2.json"), 100);
  expect((await run.finish(back)).weightsDigest).toBe(undisturbed);
  expect(run.output).toContain("passed over");
  expect(run.output).toContain('"source":"trainer-c1"');
});

test("a checkpoint that cannot be restored is passed over for the one before it", async () => {
  const run = await start({ heldAfter: 1 });
  await loseAll(run, (message) => {
    if (published1(message)) run.episodes.letGo(2); // there is progress, and so another checkpoint
    return published(message) && !published1(message);
  });
  run.episodes.letGo();
  run.coordinator.failures.set("restore", [{ code: "invalid_checkpoint_state", message: "a snapshot is missing" }]);
  expect((await run.finish(back)).weightsDigest).toBe(undisturbed);
  expect(run.output).toContain("a snapshot is missing");
  const [first, second] = [...run.output.matchAll(/"source":"(trainer-c\d+)","cut"/g)].map(([, source]) => source);
  expect(first).not.toBe(second);
});

test("a checkpoint that cannot be restored, and has none before it, stops the trainer", async () => {
  const run = await startAndLoseAll();
  const gone = { code: "not_found" as const, message: "it was released" };
  run.coordinator.failures.set("restore", [gone, gone]);
  expect(await run.train(back)).toBe(1);
  expect(run.output).toContain("none of those that have a file could be restored");
});

test("participants that are not there yet are waited for", async () => {
  const run = await startAndLoseAll();
  run.episodes.letGo();
  const away = { code: "unavailable" as const, message: "the agent is away" };
  run.coordinator.failures.set("retire", [away]);
  run.coordinator.failures.set("restore", [away]);
  expect((await run.finish(back)).weightsDigest).toBe(undisturbed);
});

test("going back without a checkpoint says what to do", async () => {
  const run = await start();
  await run.killAt(saying("log.environment", "episode.opened"), { HOLDPOINT_CHECKPOINT_EVERY_MS: "0" });
  expect(await run.train(back)).toBe(1);
  expect(run.output).toContain("leave the variable out");
  expect(await run.train({ HOLDPOINT_RESTORE: "c7" })).toBe(1);
  expect(run.output).toContain("HOLDPOINT_RESTORE=c7");
});
