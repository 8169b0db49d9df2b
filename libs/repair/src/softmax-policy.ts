/**
 * The `softmax` policy: a small linear model that learns which edit to try where. It is not a language model.
 *
 * It lists the files, reads the one that was broken, runs the tests; then it tries one flip after the other, each undone
 * before the next, until the tests pass or it has tried `maxTries`. Which flip is drawn from a softmax over the candidates
 * not yet tried. What it says is a function of weights, messages and seed alone.
 */
import { type AssistantMessage, callTools, type ChatMessage, turnOf } from "./chat.ts";
import { type Conversation, readConversation } from "./conversation.ts";
import { type Candidate, candidatesOf, type Evidence, featureNames } from "./features.ts";
import { randomOf } from "./random.ts";
import type { Site } from "./sites.ts";
import { type Choice, choose } from "./softmax.ts";
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
  const { assignment, source, ...known } = readConversation(messages);
  if (assignment === undefined) return settled(say("not a repair"));
  if (known.currentReport?.passed) return settled(say("done"));
  if (turn >= lastTurn) return settled(say("not repaired"));
  if (!known.listed) return settled(callTools(turn, [{ name: "list_files", arguments: {} }]));
  const test = { name: "run_tests", arguments: {} };
  const read = { name: "read_file", arguments: { path: assignment.file } };
  if (source === undefined) return settled(callTools(turn, [read, test]));
  if (known.currentReport === undefined) return settled(callTools(turn, [test]));
  const { file, hint } = assignment;
  return tryNext({ file, source, edits: known.edits, hint, report: known.firstReport }, turn, (vectors) =>
    choose(weights, vectors, randomOf(seed)),
  );
}

/** What is known when there is something to try. */
interface Workpiece extends Evidence {
  readonly file: string;
  readonly edits: Conversation["edits"];
}

function tryNext(piece: Workpiece, turn: number, draw: (vectors: Candidate["features"][]) => Choice): PolicyReply {
  const untried = untriedOf(piece);
  const { index, ...drawn } = draw(untried.map(({ features }) => features));
  const chosen = untried[index];
  if (chosen === undefined) return settled(say("not repaired"));
  return {
    message: callTools(turn, editsFor(piece, chosen.edit)),
    staging: { ...drawn, choice: { site: chosen.site, candidates: untried.length } },
  };
}

function say(content: string): AssistantMessage {
  return { role: "assistant", content };
}

/** Nothing was drawn. */
function settled(message: AssistantMessage): PolicyReply {
  return { message, staging: null };
}

/** The candidates that no edit asked for yet, whatever came of it. */
function untriedOf(piece: Workpiece): readonly Candidate[] {
  const tried = new Set(piece.edits.map(({ edit }) => `${edit.line} ${edit.new}`));
  return candidatesOf(piece).filter(({ edit }) => !tried.has(`${edit.line} ${edit.new}`));
}

/** The calls that put back every line that is not as it was first read, and then make `wanted`, an edit of that. */
function editsFor({ file, source, edits }: Workpiece, wanted: LineEdit) {
  const original = source.split("\n");
  const current = new Map(edits.filter(({ done }) => done).map(({ edit }) => [edit.line, edit.new]));
  const undone = [...current].flatMap(([line, text]): LineEdit[] => {
    const before = original[line - 1] ?? "";
    return line === wanted.line || text === before ? [] : [{ line, old: text, new: before }];
  });
  const calls = [...undone, { ...wanted, old: current.get(wanted.line) ?? wanted.old }];
  return calls.map((edit) => ({ name: "edit_file", arguments: { path: file, ...edit } }));
}
