import type { ControlEvent } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { Room } from "./room.ts";

type Ask = Extract<ControlEvent, { type: "participants.asked" }>["data"];

function ask(operation: Ask["operation"], rest: Partial<Ask> = {}): ControlEvent {
  const data = { command: 1, operation, roles: ["agent" as const], checkpointId: "c1", remainingMs: 60_000, ...rest };
  return { type: "participants.asked", data };
}

const episode = { rollout: "r1", attempt: 0 };
const seed = { digest: "0".repeat(64), bytes: 0, text: "" };

test("a session that is restored has the state that the checkpoint fixed, whatever came after", async () => {
  const room = new Room();
  const agent = await room.enter();
  await agent.record({ type: "session.seeded", data: { ...episode, sessionId: "s1", seed } });
  await agent.record({ type: "call.received", data: { ...episode, turn: 0, response: seed } });

  const prepared = await room.answerTo(await room.decide(ask("prepare")));
  expect(prepared).toMatchObject({ blockerCount: 0, restarts: [], continued: [episode] });
  const captured = await room.answerTo(await room.decide(ask("capture", { scope: [episode] })));
  expect(captured).toMatchObject({ sessions: 1 });
  const cut = await room.decide({
    type: "checkpoint.captured",
    data: { command: 1, checkpointId: "c1", stream: "HP_room", scope: [episode], holdings: [] },
  });
  await room.answerTo(await room.decide(ask("proceed")));
  await agent.record({ type: "call.received", data: { ...episode, turn: 1, response: seed } });
  expect(agent.sessions.get(episode)?.state.calls).toBe(2);

  const assignments = [{ rollout: "r1", from: 0, to: 1 }];
  const restore = { command: 2, checkpointId: "x1", source: "c1", cut: { HP_room: cut }, assignments };
  const restored = await room.answerTo(await room.decide(ask("restore", restore)));
  expect(restored).toMatchObject({ sessions: 1, digest: captured.digest, installed: [{ rollout: "r1", attempt: 1 }] });
  expect(agent.sessions.get({ rollout: "r1", attempt: 1 })).toBeUndefined();
  await room.decide({ type: "restore.installed", data: { command: 2, checkpointId: "x1", source: "c1", receipt: [] } });
  await room.answerTo(await room.decide(ask("resume", { checkpointId: "x1" })));
  expect(agent.sessions.get({ rollout: "r1", attempt: 1 })).toMatchObject({ claimed: false, state: { calls: 1 } });
  expect(room.troubles).toEqual([]);

  const successor = await room.enter();
  expect(successor.sessions.get({ rollout: "r1", attempt: 1 })).toMatchObject({ claimed: false, state: { calls: 1 } });
  await expect(agent.record({ type: "activation.started", data: episode })).rejects.toMatchObject({
    code: "stale_attempt",
  });
});
