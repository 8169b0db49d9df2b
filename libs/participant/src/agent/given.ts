/** What an author's function hands to a step of its session: refused in words, where it is not what the step takes. */
import { HoldpointError } from "@holdpoint/errors";
import * as z from "zod";

const Request = z.looseObject({ model: z.string(), messages: z.array(z.looseObject({})) });

/** @param name the definition's, for messages */
export function checkRequest(name: string, request: unknown): void {
  const parsed = Request.safeParse(request);
  if (parsed.success) return;
  const words = `expected a request of chat completions, { model, messages: [ … ] }, found ${foundIn(request)}`;
  throw refusal(name, "model(request)", `${words}\n${z.prettifyError(parsed.error)}`);
}

/** @param name the definition's, for messages */
export function checkTool(name: string, tool: unknown, input: unknown): void {
  if (typeof tool !== "string") throw refusal(name, "tool(name, input)", `expected a name, found ${foundIn(tool)}`);
  if (typeof input === "string") return;
  const words = `expected the arguments as JSON text, such as JSON.stringify({ … }), found ${foundIn(input)}`;
  throw refusal(name, `tool(${JSON.stringify(tool)}, input)`, words);
}

/** @param name the definition's, for messages */
export function checkBoundary(name: string, evaluate: unknown): void {
  if (typeof evaluate === "function") return;
  const words = `expected a function that gives what to go on with, such as () => state, found ${foundIn(evaluate)}`;
  throw refusal(name, "boundary(evaluate)", words);
}

function refusal(name: string, step: string, words: string): HoldpointError {
  return new HoldpointError("invalid_request", `activate of ${name}: session.${step}: ${words}`);
}

/** What kind of thing it is; never what it says. */
export function foundIn(given: unknown): string {
  if (given === null || given === undefined) return String(given);
  if (Array.isArray(given)) return "an array";
  if (typeof given !== "object") return `a ${typeof given}`;
  const kind: unknown = given.constructor;
  return typeof kind === "function" && kind !== Object ? `an object of class ${kind.name}` : "an object";
}
