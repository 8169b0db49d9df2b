/** The packages whose tests are tested by mutations: rules without a platform, which tests can reach in every corner. */
export const pure: readonly string[] = [
  "errors",
  "eventsourcing",
  "session",
  "checkpoint",
  "episode",
  "ledger",
  "repair",
];
