/**
 * Finished calls by name, as a value that shares all but one path with the one before it: a trie over the hexadecimal digits of the
 * names' digests. Finding and adding a call costs about as many steps as the logarithm of their number to the base of 16.
 */
import type { Digest } from "@holdpoint/schemas";

interface Leaf<Call> {
  readonly digest: Digest;
  readonly call: Call;
}

interface Branch<Call> {
  /** By the next digit. */
  readonly children: Readonly<Record<string, Node<Call>>>;
}

type Node<Call> = Leaf<Call> | Branch<Call>;

export type CallIndex<Call> = Branch<Call>;

export const noCalls: CallIndex<never> = { children: {} };

/** The call whose name has this digest. */
export function callOf<Call>(index: CallIndex<Call>, digest: Digest): Call | undefined {
  let branch = index;
  for (const digit of digest) {
    const child = branch.children[digit];
    if (child === undefined) return undefined;
    if ("digest" in child) return child.digest === digest ? child.call : undefined;
    branch = child;
  }
  return undefined;
}

/** `index` with a call; one of the same name is replaced. */
export function withCall<Call>(index: CallIndex<Call>, digest: Digest, call: Call): CallIndex<Call> {
  return added(index, { digest, call }, 0);
}

function added<Call>({ children }: Branch<Call>, leaf: Leaf<Call>, depth: number): Branch<Call> {
  const digit = leaf.digest[depth] ?? "";
  return { children: { ...children, [digit]: joined(children[digit], leaf, depth + 1) } };
}

function joined<Call>(there: Node<Call> | undefined, leaf: Leaf<Call>, depth: number): Node<Call> {
  if (there === undefined) return leaf;
  if (!("digest" in there)) return added(there, leaf, depth);
  if (there.digest === leaf.digest) return leaf;
  return added(added({ children: {} }, there, depth), leaf, depth);
}
