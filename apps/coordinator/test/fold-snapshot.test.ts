import type { SnapshotStore, StoredMessage } from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import { expect, test } from "vitest";
import { FoldSnapshots } from "../src/fold-snapshot.ts";
import { MemoryRun, type Running, until } from "./memory-run.ts";

/** The snapshots of a coordinator that saves whenever it has nothing else to do. */
function eager({ log, store }: MemoryRun, onto: SnapshotStore = store) {
  return { snapshots: new FoldSnapshots({ log, store: onto, hash: sha256, everyBytes: 0 }) };
}

/** A run whose first coordinator has saved a snapshot, and was stopped; what came after it is in the log. */
async function savedRun(): Promise<{ run: MemoryRun; checkpoint: () => Promise<void> }> {
  const run = await MemoryRun.joined();
  let number = 0;
  const checkpoint = async () => {
    number += 1;
    const command = await run.command("checkpoint", { checkpointId: `c${number}`, timeoutMs: 30_000 });
    expect(await run.outcome(command)).toMatchObject({ ok: true });
  };
  const first = await run.lead(eager(run));
  await checkpoint();
  await checkpoint();
  await until(() => run.saved.size > 0);
  await first.coordinator.stop();
  return { run, checkpoint };
}

/** Starts a coordinator with the snapshots that there are, and one without; gives both, and what the first has folded. */
async function both(run: MemoryRun): Promise<{ from: Running; whole: Running; folded: StoredMessage[] }> {
  const folded: StoredMessage[] = [];
  const from = run.start({ seen: (message) => void folded.push(message) });
  const whole = run.start({ snapshots: new FoldSnapshots({ log: run.log, store: nothing, hash: sha256 }) });
  await until(() => from.standings.length > 0 && whole.standings.length > 0);
  const last = await run.log.lastSequence();
  await until(() => [from, whole].every(({ coordinator }) => coordinator.state.sequence === last));
  return { from, whole, folded };
}

const nothing: SnapshotStore = { save: async () => {}, load: async () => undefined };

test("[L14] a coordinator that starts from a snapshot comes to the state that one without comes to, and goes on", async () => {
  const { run, checkpoint } = await savedRun();
  const { from, whole, folded } = await both(run);
  expect(from.coordinator.state).toEqual(whole.coordinator.state);
  expect(folded[0]?.sequence).toBeGreaterThan(20);
  await checkpoint();
  await Promise.all([from.coordinator.stop(), whole.coordinator.stop()]);
});

test.each([
  ["damaged", (bytes: Uint8Array) => bytes.map((byte, at) => (at === 60 ? byte ^ 255 : byte))],
  ["cut off", (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2)],
  ["none of ours", () => new TextEncoder().encode("{}")],
])("[L14] a snapshot that is %s counts as none", async (_, spoil) => {
  const { run } = await savedRun();
  for (const [name, bytes] of run.saved) run.saved.set(name, spoil(bytes));
  const { from, whole, folded } = await both(run);
  expect(folded[0]?.sequence).toBe(1);
  expect(from.coordinator.state).toEqual(whole.coordinator.state);
  await Promise.all([from.coordinator.stop(), whole.coordinator.stop()]);
});

test("[L15] a snapshot of another stream, ahead of the log or beside it, counts as none", async () => {
  const { run: old } = await savedRun();
  for (const length of [0, 3]) {
    const young = await MemoryRun.joined();
    young.nowMs += 1;
    for (let at = 0; at < length * 100; at++) await young.command("status", {});
    for (const [name, bytes] of old.saved) young.saved.set(name, bytes);
    const { from, folded } = await both(young);
    expect(folded[0]?.sequence).toBe(1);
    await from.coordinator.stop();
  }
});

test("[L14] a store that fails, or that is slow, keeps nobody from deciding", async () => {
  const run = await MemoryRun.joined();
  let asked = 0;
  const failing: SnapshotStore = {
    load: () => Promise.reject(new Error("gone")),
    save: () => {
      asked += 1;
      return asked === 1 ? Promise.reject(new Error("gone")) : new Promise(() => {});
    },
  };
  const { coordinator } = await run.lead(eager(run, failing));
  for (let round = 0; round < 5; round++) {
    expect(await run.outcome(await run.command("status", {}))).toMatchObject({ ok: true });
  }
  expect(asked).toBe(2);
  await coordinator.stop();
});

test("[L14] nothing is saved before it is worth it", async () => {
  const run = await MemoryRun.joined();
  const { coordinator } = await run.lead();
  for (let round = 0; round < 50; round++) await run.outcome(await run.command("status", {}));
  expect(run.saved.size).toBe(0);
  await coordinator.stop();
});
