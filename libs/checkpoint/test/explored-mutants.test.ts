/** That an exploration can fail: one rule is broken at a time, by a decider around the real one, and found. */
import { type Context, type CoordinatorState, type Decision, type Planned, react } from "@holdpoint/checkpoint";
import type { ControlEvent } from "@holdpoint/schemas";
import { explore } from "@holdpoint/testing";
import { describe, expect, test } from "vitest";
import { asTest, given } from "./given.ts";
import { spaceOf } from "./small-run-space.ts";
import { beginningOf, stories, type StoryName } from "./small-run-stories.ts";
import type { World } from "./small-run.ts";

type Decide = World["decide"];

/** The real decider, shown another state. */
function seeing(change: (state: CoordinatorState) => CoordinatorState): Decide {
  return (context: Context) => react({ ...context, state: change(context.state) });
}

/** The real decider, whose appends are changed. */
function saying(change: (messages: readonly Planned[], context: Context) => readonly Planned[]): Decide {
  return (context) => {
    const decided: Decision = react(context);
    return decided.kind === "append" ? { ...decided, messages: change(decided.messages, context) } : decided;
  };
}

function eventsChanged(change: (event: ControlEvent, context: Context) => ControlEvent): Decide {
  return saying((messages, context) =>
    messages.map((planned) =>
      planned.to === "control"
        ? { ...planned, events: planned.events.map((event) => change(event, context)) }
        : planned,
    ),
  );
}

const mutants: readonly (readonly [string, StoryName, string, Decide])[] = [
  ["forgets which ids were resumed", "one checkpoint", "R2", seeing((state) => ({ ...state, stale: new Set() }))],
  [
    "lets a second checkpoint open",
    "two checkpoints",
    "R1",
    (context) => {
      const decided = react(context);
      const [queued] = context.state.queue.values();
      const isNext =
        queued?.read.ok === true && queued.read.command.operation === "prepare" && context.state.ops.size > 0;
      return isNext
        ? react({ ...context, state: { ...context.state, open: undefined, phase: "idle", ops: new Map() } })
        : decided;
    },
  ],
  [
    "commits a restart",
    "one checkpoint",
    "R3",
    eventsChanged((event) =>
      event.type === "checkpoint.prepared"
        ? {
            ...event,
            data: { ...event.data, restarts: [], continued: [...event.data.continued, ...event.data.restarts] },
          }
        : event,
    ),
  ],
  [
    "drops what is kept",
    "a release",
    "R4",
    eventsChanged((event, { state }) =>
      event.type === "checkpoint.releasing"
        ? { ...event, data: { ...event.data, dropped: [...state.restorable.keys()] } }
        : event,
    ),
  ],
  [
    "tells participants to free what is kept",
    "a release",
    "R4",
    eventsChanged((event) =>
      event.type === "participants.asked" && event.data.operation === "release"
        ? { ...event, data: { ...event.data, kept: [] } }
        : event,
    ),
  ],
  [
    "gives an attempt away twice",
    "two restores",
    "R5",
    seeing((state) => ({
      ...state,
      rollouts: new Map([...state.rollouts].map(([rollout, known]) => [rollout, { ...known, highest: 0, mark: 0 }])),
    })),
  ],
  [
    "lets a coordinator write that was followed",
    "one checkpoint",
    "R5",
    saying((messages) =>
      messages.map((planned) =>
        planned.to === "control" && planned.expects === undefined
          ? { ...planned, expects: { subject: "hp.demo.outcome.999999", sequence: 0 } }
          : planned,
      ),
    ),
  ],
  [
    "cuts without a guard for each process",
    "one checkpoint",
    "R6",
    (context) => {
      const { state } = context;
      const ends = [...state.ops.values()]
        .flatMap(({ asks }) => asks.at(-1))
        .flatMap((ask) => [...(ask?.answers ?? [])]);
      const told = new Map(state.ends);
      for (const [key, { sequence }] of ends) told.set(`hp.demo.log.${key}`, sequence);
      const decided = react({ ...context, state: { ...state, ends: told } });
      if (decided.kind !== "append") return decided;
      const messages = decided.messages.filter((planned) => {
        return planned.to !== "control" || planned.expects?.subject.startsWith("hp.demo.log.") !== true;
      });
      return { ...decided, messages };
    },
  ],
  ["never ends a lease", "one checkpoint", "R7", neverEnding()],
  [
    "opens without a lease",
    "one checkpoint",
    "R7",
    saying((messages) =>
      messages.map((planned) =>
        planned.to === "control"
          ? { ...planned, events: planned.events.filter(({ type }) => type !== "lease.moved") }
          : planned,
      ),
    ),
  ],
];

function neverEnding(): Decide {
  return seeing((state) => ({
    ...state,
    open: state.open && { ...state.open, leaseUntilMs: Number.POSITIVE_INFINITY, expired: false },
  }));
}

describe("an exploration finds a decider that", () => {
  test.each(mutants)("%s", (_what, name, rule, decide) => {
    const story = stories[name];
    const start = beginningOf(story, ["dies", "expires"], decide);
    const { counterexample, states } = explore(spaceOf(story.commands), [start], 3_000);
    expect(counterexample?.fault).toContain(rule);
    const { actions = [], fault = "" } = counterexample ?? {};
    process.stdout.write(`found after ${states} states:\n${asTest(name, actions, fault)}`);
    given(name, decide)
      .when(...actions)
      .isBroken(rule);
    given(name)
      .when(...actions)
      .nothingIsBroken();
  });
});

test("what it prints is a test that can be pasted", () => {
  expect(asTest("one checkpoint", ["prepare c1", "resume c1"], "R2: c1")).toBe(
    [
      'test("R2: c1", () => {',
      '  given("one checkpoint").when(',
      '    "prepare c1",',
      '    "resume c1",',
      "  ).nothingIsBroken();",
      "});",
      "",
    ].join("\n"),
  );
});
