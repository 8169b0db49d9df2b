/**
 * Every interleaving of a small run, breadth first, with the real deciders: two coordinators, three participants of which one has
 * two workers, two checkpoints, a restore, and one fault of a kind at a time. The states are those of the deciders' own folds.
 *
 * What is left out, so that this can be read for what it is:
 *
 *  - Bounds. Each command comes as often as its story says, each fault once; no more than `HOLDPOINT_STATES` states are visited in
 *    each exploration, so that those which are not complete hold up to the depth that is printed.
 *  - The leader decides at once whatever is due, but where the fault is that it is slow: then each of its appends is a step. It
 *    always knows the whole log. One that was followed is judged at each decision by whether the log would store it one message later.
 *  - Processes read at once what stands on control, but for one that lags: it reads all that it has missed at some later time, or dies.
 *    What a process captures and its answer are one message.
 *  - Time stands still, but for "time passes", to the next instant that the leader waits for, and "the lease ends".
 *  - Two worlds are the same up to the names of positions in the log and a shift of time: see `small-run-key.ts`, and
 *    `explored-key.test.ts` for whether they may be.
 *  - The log itself is never damaged, and loses nothing.
 */
import { explore } from "@holdpoint/testing";
import { afterAll, expect, test } from "vitest";
import { asTest } from "./given.ts";
import { spaceOf } from "./small-run-space.ts";
import { beginningOf, faults, isStory, stories } from "./small-run-stories.ts";

/** How many states each exploration visits at most; given, every fault is tried in every story. */
const given = process.env["HOLDPOINT_STATES"];
const maxStates = Number(given ?? 4_000);

let explored = 0;
afterAll(() => void process.stdout.write(`explored: ${explored} states\n`));

/** The stories that are small enough to be explored to their end with each fault, and all others without. */
const withFaults: ReadonlySet<string> = new Set(["one checkpoint", "one restore"]);
const cases = Object.keys(stories)
  .filter(isStory)
  .flatMap((name) => {
    const tried = given !== undefined || withFaults.has(name) ? faults : [];
    return ["nothing" as const, ...tried].map((fault) => [name, fault] as const);
  });

/** A bound against hanging, in milliseconds. */
const timeout = 120_000 + maxStates * 20;

test.each(cases)(
  "no history breaks a rule, and every hold ends: %s, and what may go wrong is %s",
  { timeout },
  (name, fault) => {
    const story = stories[name];
    const start = beginningOf(story, fault === "nothing" ? [] : [fault]);
    const { states, transitions, depth, isComplete, counterexample } = explore(
      spaceOf(story.commands),
      [start],
      maxStates,
    );
    const reached = isComplete ? "all there are" : `all up to a depth of ${depth - 1}`;
    explored += states;
    process.stdout.write(
      `${name}, what may go wrong is ${fault}: ${states} states, ${transitions} transitions, ${reached}\n`,
    );
    if (counterexample === undefined) return;
    const { actions, fault: rule } = counterexample;
    expect.fail(`${rule}\n\n${asTest(name, actions, rule)}`);
  },
);
