/**
 * Seeded random numbers, the same on every machine: all state is 32-bit integers.
 *
 * The generator is xoshiro128** (D. Blackman, S. Vigna, https://prng.di.unimi.it), its state filled by splitmix32. Not for
 * secrets.
 */

/** A stream of random numbers. Reading it moves it on. */
export interface Random {
  /** Uniform over the integers of [0, 2^32). */
  uint32(): number;
  /** Uniform over the multiples of 2^-32 in [0, 1). */
  fraction(): number;
  /** Uniform over the integers of [0, `bound`), but for a bias below `bound` / 2^32. `bound`: 1 to 2^32. */
  below(bound: number): number;
}

/** The stream that `seed`, an integer of [0, 2^32), stands for. */
export function randomOf(seed: number): Random {
  const state = Uint32Array.from([1, 2, 3, 4], (step) => mix(seed + Math.imul(step, 0x9e3779b9)));
  const uint32 = () => next(state);
  const fraction = () => uint32() / 2 ** 32;
  return { uint32, fraction, below: (bound) => Math.floor(fraction() * bound) };
}

/** A seed for `parts` taken together: other parts, or the same in another order, give an unrelated one. */
export function seedFrom(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) {
    for (const character of `${String(part)}\u0000`) {
      hash = mix(hash ^ (character.codePointAt(0) ?? 0));
    }
  }
  return hash;
}

/**
 * The seed of what a policy does in one turn of one rollout.
 *
 * The attempt is no part of it: a replacement attempt, asked again, does the same.
 */
export function seedOf(runSeed: number, rolloutId: string, turn: number): number {
  return seedFrom("turn", runSeed, rolloutId, turn);
}

/** The finalizer of splitmix32: every bit of `value` moves every bit of the result. */
function mix(value: number): number {
  let mixed = value | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}

function next(state: Uint32Array): number {
  const [a = 0, b = 0, c = 0, d = 0] = state;
  const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
  const crossed = d ^ b;
  state.set([a ^ crossed, b ^ c ^ a, c ^ a ^ (b << 9), rotate(crossed, 11)]);
  return result;
}

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
