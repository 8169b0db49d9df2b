import { MemoryLog } from "@holdpoint/eventsourcing";
import { expect, test } from "vitest";
import { Publications, sayingOf, type TrainerLogEvent } from "../src/publications.ts";
import { firstState, type TrainerState, withGroup } from "../src/state.ts";
import { worldPlan } from "./world.ts";

const untrained = "0".repeat(64);
const a = "a".repeat(64);
const b = "b".repeat(64);

/** The state after one group was trained for each of `policies`. */
function trained(...policies: readonly string[]): TrainerState {
  return policies.reduce<TrainerState>((state, policy, index) => {
    const results = [
      { rollout: `g${index}-r0`, attempt: 0, status: "finished" as const, reward: 1, policyVersion: 0, sequence: 5 },
    ];
    return withGroup(state, { group: `g${index}`, results, weights: state.weights, policy });
  }, firstState(worldPlan));
}

async function published(...messages: readonly (readonly TrainerLogEvent[])[]): Promise<Publications> {
  const log = new MemoryLog("HP_t");
  const subject = "hp.t.log.trainer.main.0";
  for (const [sequence, events] of messages.entries()) {
    const body = JSON.stringify({ schema: 1, incarnation: "t", events });
    await log.append({ subject, body, messageId: `${sequence}`, expected: { subject, sequence } });
  }
  return Publications.read(log, "t", messages.length);
}

test("a trainer that has said nothing says every version, and every group", async () => {
  const none = await published();
  expect(none.missing(sayingOf(trained(a), untrained)).map(({ type }) => type)).toEqual([
    "policy.published",
    "policy.published",
    "group.trained",
  ]);
});

test("what the log says already is not said again, wherever the cursor was", async () => {
  const state = trained(a, b);
  const before = await published(sayingOf(state, untrained));
  const later = { ...state, groups: state.groups.map((group) => ({ ...group, cursor: group.cursor + 7 })) };
  expect(before.missing(sayingOf(later, untrained))).toEqual([]);
});

test("[L12] after going back, a version that another history has published since is said again", async () => {
  const both = await published(sayingOf(trained(a), untrained), sayingOf(trained(b), untrained));
  expect(both.missing(sayingOf(trained(a), untrained))).toEqual([
    { type: "policy.published", data: { version: 1, digest: a } },
  ]);
  const grown = await published(sayingOf(trained(a), untrained));
  for (const event of grown.missing(sayingOf(trained(a, b), untrained))) grown.add(event);
  expect(grown.missing(sayingOf(trained(a, b), untrained))).toEqual([]);
});
