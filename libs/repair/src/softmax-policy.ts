/**
 * The `softmax` policy: a small linear model that learns which edit to try where. It is not a language model.
 *
 * It lists the files, reads the one that was broken, runs the tests; then it tries one flip after the other, each undone
 * before the next, until the tests pass or it has tried `maxTries`. Which flip is drawn from a softmax over the candidates
 * not yet tried. What it says is a function of weights, messages and seed alone.
 */
import { type AssistantMessage, callTools, type ChatMessage, turnOf } from "./chat.ts";
import { type Conversation, readConversation } from "./conversation.ts";
import { type Candidate, candidatesOf, featureNames } from "./features.ts";
import { randomOf } from "./random.ts";
import type { Site } from "./sites.ts";
import { choose } from "./softmax.ts";
import type { LineEdit } from "./tools.ts";

/** Flips that are tried before it gives up. */
export const maxTries = 8;

/** The turn in which it ends at the latest: after two to look around, and two for each try. */
const lastTurn = 2 + 2 * maxTries;

/** What a trainer needs of a model call in which something was drawn. */
export interface Staging {
  /** Natural logarithm of the probability with which `choice` was drawn. */
  readonly logprob: number;
  /** Of `logprob` by the weights, in the order of `featureNames`. */
  readonly gradient: readonly number[];
  readonly choice: { readonly site: Site; readonly candidates: number };
}

export interface PolicyReply {
  readonly message: AssistantMessage;
  /** null: nothing was drawn, so there is nothing to learn. */
  readonly staging: Staging | null;
}

export interface PolicyRequest {
  readonly weights: readonly number[];
  readonly messages: readonly ChatMessage[];
  /** Of this turn: `seedOf(…)`. */
  readonly seed: number;
}

/** Weights of a policy that has learnt nothing: every candidate is as likely. */
export function initialWeights(): readonly number[] {
  return featureNames.map(() => 0);
}

/** The next message. A conversation that is not about a repair is ended at once. */
export function policyReply({ weights, messages, seed }: PolicyRequest): PolicyReply {
  const turn = turnOf(messages);
  const known = readConversation(messages);
  const settled = settledReply(known, turn);
  if (settled !== undefined) return { message: settled, staging: null };
  const untried = untriedOf(known);
  const vectors = untried.map(({ features }) => features);
  const { index, ...drawn } = choose(weights, vectors, randomOf(seed));
  const chosen = untried[index];
  if (chosen === undefined) return { message: say("not repaired"), staging: null };
  return {
    message: callTools(turn, editsFor(known, chosen.edit)),
    staging: { ...drawn, choice: { site: chosen.site, candidates: untried.length } },
  };
}

/** What is to be said where nothing is to be drawn. */
function settledReply(known: Conversation, turn: number): AssistantMessage | undefined {
  if (known.assignment === undefined) return say("not a repair");
  if (known.currentReport?.passed) return say("done");
  if (turn >= lastTurn) return say("not repaired");
  if (!known.listed) return callTools(turn, [{ name: "list_files", arguments: {} }]);
  const read = { name: "read_file", arguments: { path: known.assignment.file } };
  const test = { name: "run_tests", arguments: {} };
  if (known.source === undefined) return callTools(turn, [read, test]);
  return known.currentReport === undefined ? callTools(turn, [test]) : undefined;
}

function say(content: string): AssistantMessage {
  return { role: "assistant", content };
}

/** The candidates that no edit asked for yet, whatever came of it. */
function untriedOf({ assignment, source, firstReport, edits }: Conversation): readonly Candidate[] {
  if (assignment === undefined || source === undefined) return [];
  const tried = new Set(edits.map(({ edit }) => `${edit.line} ${edit.new}`));
  return candidatesOf({ source, hint: assignment.hint, report: firstReport }).filter(
    ({ edit }) => !tried.has(`${edit.line} ${edit.new}`),
  );
}

/** The calls that put back every line that is not as it was first read, and then make `wanted`, an edit of that. */
function editsFor(known: Conversation, wanted: LineEdit) {
  const original = known.source?.split("\n") ?? [];
  const current = new Map(known.edits.filter(({ done }) => done).map(({ edit }) => [edit.line, edit.new]));
  const undone = [...current].flatMap(([line, text]): LineEdit[] => {
    const before = original[line - 1] ?? "";
    return line === wanted.line || text === before ? [] : [{ line, old: text, new: before }];
  });
  const path = known.assignment?.file;
  const edits = [...undone, { ...wanted, old: current.get(wanted.line) ?? wanted.old }];
  return edits.map((edit) => ({ name: "edit_file", arguments: { path, ...edit } }));
}
