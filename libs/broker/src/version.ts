/** Versions of nats-server, as it prints them: `nats-server: v2.15.2`. */

/** Atomic batches that expect several subjects, and the reset of a consumer. */
export const minimumServerVersion = "2.14.0";

type Version = readonly [major: number, minor: number, patch: number];

/** The first `1.2.3` in `text`, without what follows it, such as `-preview.1`; `undefined` where there is none. */
export function versionIn(text: string): string | undefined {
  return /\d+\.\d+\.\d+/.exec(text)?.[0];
}

/** Whether `version`, of the form `1.2.3`, is `minimum` or later. */
export function isAtLeast(version: string, minimum: string): boolean {
  const [have, want] = [numbersOf(version), numbersOf(minimum)];
  if (have[0] !== want[0]) return have[0] > want[0];
  if (have[1] !== want[1]) return have[1] > want[1];
  return have[2] >= want[2];
}

function numbersOf(version: string): Version {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  return [major, minor, patch];
}
