/** The seed of a policy call: a replacement attempt, asked again, says the same. */

/**
 * An integer of [0, 2^32): the `seed` of the request where it is one; of any other a mixture; without one, made of the call's name,
 * which no attempt is part of.
 */
export function callSeed(
  { rollout, turn }: { readonly rollout: string; readonly turn: number },
  seed: number | null | undefined,
): number {
  if (typeof seed !== "number") return mixtureOf("call", rollout, turn);
  return seed >= 0 && seed < 2 ** 32 ? seed : mixtureOf("seed", seed);
}

/** Other parts, or the same in another order, give an unrelated number. */
function mixtureOf(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) {
    for (const character of `${String(part)}\u0000`) hash = mix(hash ^ (character.codePointAt(0) ?? 0));
  }
  return hash;
}

/** The finalizer of splitmix32: every bit of `value` moves every bit of the result. */
function mix(value: number): number {
  let mixed = value | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}
