import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MemoryLog } from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import { afterEach, beforeEach, expect, test } from "vitest";
import { requireSameStream } from "../src/same-run.ts";
import { StateDir } from "../src/state-dir.ts";
import { firstState } from "../src/state.ts";
import { worldPlan } from "./world.ts";

const state = { ...firstState(worldPlan), weights: [1, 2] };
let path: string;

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), "state-dir-test-"));
});
afterEach(() => {
  rmSync(path, { recursive: true, force: true });
});

function replaceIn(name: string, from: string, to: string): void {
  const file = join(path, name);
  writeFileSync(file, readFileSync(file, "utf8").replace(from, to));
}

test("what was saved is loaded, by another process too; before that there is nothing", async () => {
  const dir = await StateDir.open(join(path, "new"), "one");
  expect(await dir.load()).toBeUndefined();
  await dir.save(state);
  await dir.save({ ...state, cursor: 7 });
  expect(await (await StateDir.open(join(path, "new"), "two")).load()).toEqual({ ...state, cursor: 7 });
});

test("a state file that was cut off or changed is refused, with its path", async () => {
  const dir = await StateDir.open(path, "one");
  await dir.save(state);
  replaceIn("state.json", '"weights": [\n      1', '"weights": [\n      3');
  await expect(dir.load()).rejects.toMatchObject({
    code: "invalid_checkpoint_state",
    message: expect.stringMatching(/state\.json.*weights/s),
  });
  writeFileSync(join(path, "state.json"), '{"state": {');
  await expect(dir.load()).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
});

test("a process that died while it wrote leaves the file before, and its rest goes at the end of the run", async () => {
  const dir = await StateDir.open(path, "one");
  await dir.save(state);
  writeFileSync(join(path, "dead.tmp"), '{"state"');
  expect(await dir.load()).toEqual(state);
  await dir.saveFinal({ weightsDigest: "0".repeat(64), weights: [], version: 0, groups: [] });
  expect(readdirSync(path).toSorted()).toEqual(["final.json", "state.json"]);
});

test("a checkpoint file is found by its id, and refused where it is damaged or is another's", async () => {
  const dir = await StateDir.open(path, "one");
  await dir.saveCheckpoint({ checkpointId: "c1", cut: 9, state });
  await dir.saveCheckpoint({ checkpointId: "nightly.2-b", cut: 12, state });
  expect([...(await dir.checkpoints())].toSorted()).toEqual(["c1", "nightly.2-b"]);
  expect(await dir.checkpoint("c1")).toMatchObject({ checkpointId: "c1", cut: 9, state });
  await expect(dir.checkpoint("c2")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
  replaceIn("ckpt-c1.json", '"c1"', '"c0"');
  await expect(dir.checkpoint("c1")).rejects.toMatchObject({ code: "invalid_checkpoint_state" });
});

test("[L15] a stream that has another message at the cursor than the state was saved of is refused", async () => {
  const log = new MemoryLog();
  await log.append({ subject: "a", body: "one", messageId: "1", expected: { subject: "a", sequence: 0 } });
  await expect(requireSameStream(log, { ...state, cursor: 0, anchor: null })).resolves.toBeUndefined();
  await expect(requireSameStream(log, { ...state, cursor: 1, anchor: sha256("one") })).resolves.toBeUndefined();
  const code = "invalid_checkpoint_state";
  await expect(requireSameStream(log, { ...state, cursor: 1, anchor: sha256("two") })).rejects.toMatchObject({ code });
  await expect(requireSameStream(log, { ...state, cursor: 2, anchor: sha256("one") })).rejects.toMatchObject({ code });
});
