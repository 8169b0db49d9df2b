/** What the definitions of all roles have in common: a mode, and that a wrong one is refused at once, by name. */
import { HoldpointError } from "@holdpoint/errors";
import type { Mode } from "@holdpoint/schemas";
import * as z from "zod";

/**
 * The mode of a participant, or how each instance finds its own when it starts, such as by asking whether what it lends can be
 * snapshotted.
 */
export type ModeChoice<Choice extends Mode = Mode> = Choice | (() => Choice) | (() => Promise<Choice>);

/** A function of whoever defines a participant, that can be called and gives what it returns. */
export const Hook = z.custom<(...given: never[]) => unknown>((value) => kindOf(value) === "a function", {
  error: ({ input }) => {
    const isNoPlain = typeof input === "function";
    return isNoPlain ? `expected a plain or async function, found ${kindOf(input)}` : "expected a function";
  },
});

/** A hook that is called with one thing. */
export function hookOf(thing: string) {
  return Hook.refine((hook) => hook.length <= 1, {
    error: ({ input }) => {
      const found = typeof input === "function" ? input.length : 0;
      return `expected a function of the ${thing} alone, found one of ${found} arguments`;
    },
  });
}

function kindOf(value: unknown): string {
  if (typeof value !== "function") return typeof value;
  if (Function.prototype.toString.call(value).startsWith("class")) return "a class";
  const isGenerator = Object.prototype.toString.call(value).endsWith("GeneratorFunction]");
  return isGenerator ? "a generator function" : "a function";
}

/** A zod schema. */
export const SchemaHook = z.custom<z.ZodType>((value) => value instanceof z.ZodType, {
  error: "expected a zod schema, such as z.object({ … })",
});

/**
 * Refuses a definition that has not the form that `shape` says.
 *
 * @param maker the function that was called, such as `defineAgent`
 * @throws HoldpointError `invalid_request` that names the definition and each part that is wrong
 */
export function checkDefinition(maker: string, shape: z.ZodType, given: unknown): void {
  const parsed = shape.safeParse(given);
  if (parsed.success) return;
  const { data } = z.looseObject({ name: z.string() }).safeParse(given);
  const name = data === undefined ? "" : ` ${JSON.stringify(data.name)}`;
  throw new HoldpointError("invalid_request", `${maker}${name}:\n${z.prettifyError(parsed.error)}`);
}

/**
 * The mode of this instance.
 *
 * @throws HoldpointError `invalid_request` where `choice` finds one that is not among `modes`
 */
export async function chosenMode<Choice extends Mode>(
  name: string,
  choice: ModeChoice<Choice>,
  modes: readonly Choice[],
): Promise<Choice> {
  const chosen = typeof choice === "function" ? await choice() : choice;
  if (modes.includes(chosen)) return chosen;
  const found = JSON.stringify(chosen) ?? "undefined";
  throw new HoldpointError("invalid_request", `the mode of ${name} is ${found}; expected ${modes.join(" or ")}`);
}
