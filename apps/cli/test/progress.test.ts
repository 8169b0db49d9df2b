import { expect, test } from "vitest";
import { ProgressFold } from "../src/demo/progress.ts";
import { checkpoint, TestEpisode, TestStream } from "./stream.ts";

async function watched(): Promise<{ stream: TestStream; fold: ProgressFold; episode: TestEpisode }> {
  const stream = new TestStream();
  const fold = new ProgressFold();
  await stream.log.tail({ from: 1 }, (message) => fold.take(message));
  return { stream, fold, episode: new TestEpisode(stream, "g0-r0") };
}

function saved(checkpointId: string | null) {
  return { type: "trainer.saved", data: { checkpointId, version: 0, cursor: 0 } };
}

test("calls, executions and rollouts are counted as they come", async () => {
  const { fold, episode } = await watched();
  await episode.open();
  await episode.activate();
  await episode.call(0);
  await episode.tool(0, "x1");
  expect(fold.now).toMatchObject({ opened: 1, finished: 0, calls: 1, tools: 1 });

  await episode.end(0);
  expect(fold.now).toMatchObject({ opened: 1, finished: 1 });
});

test("a rollout can be restored once the trainer has saved the checkpoint that holds it, until it has finished", async () => {
  const { stream, fold, episode } = await watched();
  await episode.open();
  await stream.say("trainer", saved(null));
  await checkpoint(stream, "c1", [episode.episode]);
  expect(fold.now).toMatchObject({ checkpoints: 1, restorable: 0 });

  await stream.say("trainer", saved("c1"));
  expect(fold.now.restorable).toBe(1);
  await episode.end(0);
  expect(fold.now.restorable).toBe(0);
});

test("whoever waits for progress is told when it is there, and when nobody waits any more", async () => {
  const { fold, episode } = await watched();
  const over = new AbortController();
  const opened = fold.until(({ opened: count }) => count > 0, over.signal);
  const never = fold.until(({ finished }) => finished > 0, over.signal);
  await episode.open();

  await opened;
  over.abort();
  await expect(never).rejects.toThrow("no longer waited for");
});
