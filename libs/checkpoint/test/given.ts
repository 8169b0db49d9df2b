/** A history of a small run as a test: what an exploration prints, so that it can be pasted. */
import { expect } from "vitest";
import { keyOf } from "./small-run-key.ts";
import { spaceOf } from "./small-run-space.ts";
import { beginningOf, faults, stories, type Story, type StoryName } from "./small-run-stories.ts";
import type { World } from "./small-run.ts";

/** Given the beginning of a story, when that happens, no rule is broken; `decide` instead of the real decider. */
export function given(name: StoryName, decide?: World["decide"]) {
  return {
    when: (...actions: readonly string[]) => ({
      nothingIsBroken: () => expect(faultAfter(name, actions, decide)).toBeUndefined(),
      isBroken: (rule: string) => expect(faultAfter(name, actions, decide)).toContain(rule),
    }),
  };
}

/** The first fault on the way. */
function faultAfter(name: StoryName, actions: readonly string[], decide?: World["decide"]): string | undefined {
  const story: Story = stories[name];
  const space = spaceOf(story.commands);
  let world = beginningOf(story, faults, decide);
  let fault = space.fault(world);
  for (const action of actions) {
    if (fault !== undefined) return fault;
    if (!space.actions(world).includes(action)) throw new Error(`${action} cannot happen there: ${keyOf(world)}`);
    world = space.after(world, action);
    fault = space.fault(world);
  }
  return fault;
}

/** The text of a test that shows `fault`. */
export function asTest(name: StoryName, actions: readonly string[], fault: string): string {
  const when = actions.map((action) => `    ${JSON.stringify(action)},\n`).join("");
  return `test(${JSON.stringify(fault)}, () => {\n  given(${JSON.stringify(name)}).when(\n${when}  ).nothingIsBroken();\n});\n`;
}
