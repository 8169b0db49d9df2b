/** The trainer's process against a real broker: what it dispatches, trains and saves, and that nothing of it is lost or done twice. */
import { type RunningBroker, startBroker } from "@holdpoint/broker";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { saying, StubRun, type StubRunOptions } from "./stub/run.ts";

let broker: RunningBroker;
/** Of a run to which nothing happened. */
let undisturbed: string;
const running: StubRun[] = [];
const planned = ["g0", "g1", "g2", "g3"];
const rollouts = planned.flatMap((group) => [`${group}-r0`, `${group}-r1`]);

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

async function start(options?: StubRunOptions): Promise<StubRun> {
  const run = await StubRun.start(broker, options);
  running.push(run);
  return run;
}

/** Groups that the log says were trained, in order, as often as it says so. */
async function trainedIn(run: StubRun): Promise<readonly string[]> {
  return (await run.said()).flatMap((event) => (event.type === "group.trained" ? [event.data.group] : []));
}

test("a run is trained group by group, sampled with the weights that the plan says, and says what came of it", async () => {
  const run = await start();
  const { groups, version, weightsDigest } = await run.finish();
  expect(groups.map(({ group }) => group)).toEqual(planned);
  expect(groups.map((group) => group.version)).toEqual([1, 2, 3, 4]);
  expect(groups.flatMap(({ episodes }) => episodes.map(({ rollout }) => rollout))).toEqual(rollouts);
  expect(version).toBe(4);
  expect(weightsDigest).toBe(undisturbed);
  expect(run.episodes.dispatched).toEqual(rollouts.map((rollout) => `${rollout}/0`));
  const versions = (await run.said()).flatMap((event) =>
    event.type === "policy.published" ? [event.data.version] : [],
  );
  expect(versions).toEqual([0, 1, 2, 3, 4]);
  expect(readdirSync(run.stateDir).toSorted()).toEqual(["final.json", "state.json"]);
  expect((await run.commanded()).at(-1)).toBe("release");
  expect(await run.unacknowledged()).toBe(0);
  await run.finish();
  expect(await trainedIn(run)).toEqual(planned);
});

const dispatched = saying("log.environment", "episode.opened");
const ended = saying("result");
const published = saying("log.trainer", '"policy.published"');
const commanded = saying("cmd.checkpoint");
const captured = saying("control", "checkpoint.captured");
const saved = saying("log.trainer", '"checkpointId":"trainer-c');

/** What came of a run, once it is finished. */
async function outcomeOf(run: StubRun) {
  const { groups, weightsDigest } = await run.finish();
  const opened = (await run.opened()).toSorted();
  return { groups: groups.map(({ group }) => group), weightsDigest, trained: await trainedIn(run), opened };
}

/** Of a run to which nothing happened. */
function asPlanned() {
  const opened = rollouts.map((rollout) => `${rollout}/0`);
  return { groups: planned, weightsDigest: undisturbed, trained: planned, opened };
}

test("[F2] [L12] killed whenever it publishes, dispatches or has a result it goes on in place: nothing is lost, or trained twice", async () => {
  const run = await start();
  for (const point of [published, dispatched, ended]) await run.killAt(point);
  expect(await outcomeOf(run)).toEqual(asPlanned());
});

test("[F2] [L12] killed whenever it has trained a group it goes on in place: nothing is lost, or trained twice", async () => {
  const run = await start();
  let kills = 0;
  while (await run.killAt(saying("log.trainer", '"group.trained"'))) kills += 1;
  expect(kills).toBeGreaterThan(0);
  expect(await outcomeOf(run)).toEqual(asPlanned());
});

test.each([
  ["publishing one, commanding one, at its cut and at its outcome", [saved, commanded, captured, saying("outcome")]],
  ["at each step of a release", [saying("cmd.release"), saying("control", "releasing"), saying("control", "released")]],
])(
  "[F2] [L12] killed amid checkpoints, %s, it goes on in place: nothing is lost, or trained twice",
  async (_, points) => {
    const run = await start({ heldAfter: 2 });
    for (const point of points) await run.killAt(point);
    run.episodes.letGo();
    expect(await outcomeOf(run)).toEqual(asPlanned());
  },
);

test("[F2] [L12] a trainer that has lost its folder finds everything in the log", async () => {
  const run = await start();
  await run.killAt(saying("log.trainer", '"group":"g2"'));
  for (const name of readdirSync(run.stateDir)) rmSync(join(run.stateDir, name));
  expect((await run.finish()).weightsDigest).toBe(undisturbed);
  expect(await trainedIn(run)).toEqual(planned);
});

test("[F2] the broker is killed while a group is on its way, and the run goes on", async () => {
  const run = await start();
  const ending = run.finish();
  await run.seen(ended);
  await broker.kill();
  await broker.restart();
  expect((await ending).weightsDigest).toBe(undisturbed);
  expect(await trainedIn(run)).toEqual(planned);
});

test("[F7] an episode that fails is an outcome of its own: its group is trained without it", async () => {
  const run = await start({ failing: new Set(["g0-r1", "g2-r0", "g2-r1"]) });
  const { groups } = await run.finish();
  expect(groups.map(({ group }) => group)).toEqual(planned);
  const failed = groups.flatMap(({ episodes }) => episodes.filter(({ status }) => status === "failed"));
  expect(failed.map(({ rollout, reward }) => ({ rollout, reward }))).toEqual([
    { rollout: "g0-r1", reward: null },
    { rollout: "g2-r0", reward: null },
    { rollout: "g2-r1", reward: null },
  ]);
  expect(await run.commanded()).not.toContain("retire");
});

test("[A9] an episode whose row lacks what was staged runs again, and the weights come out the same", async () => {
  const run = await start({ torn: new Set(["g0-r1/0", "g1-r0/0", "g1-r0/1"]) });
  const { groups, weightsDigest } = await run.finish();
  const attempts = groups.flatMap(({ episodes }) => episodes.map(({ rollout, attempt }) => `${rollout}/${attempt}`));
  expect(attempts.filter((episode) => !episode.endsWith("/0"))).toEqual(["g0-r1/1", "g1-r0/2"]);
  expect(weightsDigest).toBe(undisturbed);
});

test("[A9] a rollout whose rows are never complete stops the run, and says where to look", async () => {
  const torn = new Set(Array.from({ length: 10 }, (_, attempt) => `g0-r0/${attempt}`));
  const run = await start({ torn });
  expect(await run.train()).toBe(1);
  expect(run.output).toContain("look at the model server");
});

test("[L1] a second trainer fences the first, and finishes the run", async () => {
  const run = await start({ settings: { HOLDPOINT_CHECKPOINT_EVERY_MS: "0" }, heldAfter: 1 });
  const first = run.train();
  await run.seen(dispatched);
  const second = run.finish();
  await run.seen(saying("log.trainer", '"trainer.saved"'), 2);
  run.episodes.letGo();
  expect((await second).weightsDigest).toBe(undisturbed);
  expect(await first).toBe(3);
  expect(await trainedIn(run)).toEqual(planned);
});

test("a checkpoint that is not ready in time is skipped, and the run goes on", async () => {
  const run = await start();
  run.coordinator.failures.set("checkpoint", [{ code: "deadline_exceeded", message: "c1 is not ready" }]);
  expect((await run.finish()).weightsDigest).toBe(undisturbed);
  expect(run.output).toContain("checkpoint skipped");
});

test("a checkpoint that finds an invariant broken stops the run", async () => {
  const run = await start();
  const message = "agent and model do not agree about a call";
  run.coordinator.failures.set("checkpoint", [{ code: "invalid_checkpoint_state", message }]);
  expect(await run.train()).toBe(1);
  expect(run.output).toContain(message);
});

/** What can be restored at the end of a run in which others have taken `ids`. @param lost whether the trainer then lost its folder */
async function restorableAfter(ids: readonly string[], lost = false): Promise<readonly string[]> {
  const run = await start({ heldAfter: 1 });
  await run.killAt(saved);
  for (const id of ids) await run.command("checkpoint", { checkpointId: id, timeoutMs: 30_000 });
  if (lost) for (const name of readdirSync(run.stateDir)) rmSync(join(run.stateDir, name));
  run.episodes.letGo();
  await run.finish();
  return run.coordinator.restorable;
}

test("checkpoints that others have taken stay restorable to the end, whatever their ids look like; its own go", async () => {
  const others = ["c1", "nightly", "trainer-c40"];
  expect(await restorableAfter(others)).toEqual(others);
});

test("a trainer that has lost its folder knows its own checkpoints from its log", async () => {
  expect(await restorableAfter(["c1"], true)).toEqual(["c1"]);
});

test("a checkpoint of its own that it had not saved when it was killed goes too", async () => {
  const run = await start({ heldAfter: 1 });
  await run.killAt(saying("control", "checkpoint.committed"));
  expect(run.coordinator.restorable).toEqual(["trainer-c1"]);
  run.episodes.letGo();
  await run.finish();
  expect(run.coordinator.restorable).toEqual([]);
});

test("the number of a checkpoint is above every one that somebody else has taken", async () => {
  const run = await start({ heldAfter: 1 });
  await run.killAt(saved);
  await run.command("checkpoint", { checkpointId: "trainer-c40", timeoutMs: 30_000 });
  run.episodes.letGo();
  await run.finish();
  const numbers = (await run.savedCheckpoints()).map((id) => Number(id.slice("trainer-c".length)));
  expect(numbers[0]).toBe(1);
  expect(numbers.slice(1).every((number) => number > 40)).toBe(true);
  expect(numbers.length).toBeGreaterThan(1);
});

test("a trainer whose run is not there says what it waits for", async () => {
  const run = await start();
  const ending = run.train({ HOLDPOINT_RUN: "nowhere" });
  await vi.waitFor(() => expect(run.output).toContain('"stream":"HP_nowhere"'), { timeout: 60_000, interval: 20 });
  expect(run.output).toContain("waits for the run's stream");
  run.kill();
  await ending;
});

test("the state of another run is refused, with what differs", async () => {
  const run = await start();
  await run.killAt(saying("log.trainer", '"group":"g1"'));
  expect(await run.train({ HOLDPOINT_SEED: "2" })).toBe(2);
  expect(run.output).toContain("seed is 1, expected 2");
});

test("a trainer without a state does not train what another plan has left in the log, and disturbs nobody", async () => {
  const run = await start();
  await run.finish();
  const before = await run.log.lastSequence();
  const folder = mkdtempSync(join(tmpdir(), "trainer-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(await run.train({ HOLDPOINT_STATE_DIR: folder, HOLDPOINT_SEED: "2" })).toBe(2);
  expect(run.output).toContain("8 rollouts of this plan were opened in this run with other tasks (g0-r0, g0-r1");
  expect(await run.log.lastSequence()).toBe(before);
});

test("wrong settings are refused, all at once", async () => {
  const run = await start();
  expect(await run.train({ HOLDPOINT_STATE_DIR: "here", HOLDPOINT_SIBLINGS: "1" })).toBe(2);
  expect(run.output).toContain("HOLDPOINT_STATE_DIR");
  expect(run.output).toContain("HOLDPOINT_SIBLINGS");
});

test("rollouts that are no multiple of the siblings are named beside every other fault", async () => {
  const run = await start();
  expect(await run.train({ HOLDPOINT_STATE_DIR: "here", HOLDPOINT_ROLLOUTS: "7", LOG_LEVEL: "loud" })).toBe(2);
  expect(run.output).toContain("expected a multiple of HOLDPOINT_SIBLINGS");
  expect(run.output).toContain("LOG_LEVEL");
  expect(run.output).toContain("HOLDPOINT_STATE_DIR");
});

test("a run that has ended is not taken for one of another plan", async () => {
  const run = await start();
  await run.finish();
  const before = await run.log.lastSequence();
  expect(await run.train({ HOLDPOINT_ROLLOUTS: "16", HOLDPOINT_SEED: "2" })).toBe(2);
  expect(run.output).toContain("seed is 1, expected 2; rollouts is 8, expected 16");
  expect(await run.log.lastSequence()).toBe(before);
});
