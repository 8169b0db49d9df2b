/** Why an episode has no reward, in the words that whoever trains reads. */
import { HoldpointError } from "@holdpoint/errors";

/** Characters of the longest why. What an author throws may hold whole documents, and an end has to fit a message of the log. */
const longest = 10_000;

/** What `run` of the environment called `name` threw, as an error: whatever it is, it says so. */
export function thrownBy(name: string, thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
  const words = `run of environment ${name} threw ${kindOf(thrown)}; expected an Error, whose message says why`;
  return new HoldpointError("invalid_request", words);
}

/** Its message, as far as it fits; where it has none, its name. */
export function whyOf({ message, name }: Error): string {
  if (message === "") return name;
  return message.length <= longest ? message : `${message.slice(0, longest)}… (of ${message.length} characters)`;
}

function kindOf(thrown: unknown): string {
  if (thrown === undefined || thrown === null) return String(thrown);
  if (typeof thrown === "string") return `the string ${JSON.stringify(thrown)}`;
  return typeof thrown === "object" ? "an object that is no Error" : `a ${typeof thrown}`;
}
