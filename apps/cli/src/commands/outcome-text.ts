/** What became of a command, as lines for a person. */
import type { Episode, Outcome, Result } from "@holdpoint/schemas";

/** Most entries of a list that are printed. */
const maxListed = 20;

export function outcomeText(outcome: Outcome): string {
  const head = outcome.ok
    ? `${outcome.operation}: done (command ${outcome.command})`
    : `${outcome.operation}: ${outcome.problem.code}: ${outcome.problem.message} (command ${outcome.command})`;
  const lines = outcome.result === undefined ? [] : resultLines(outcome.result);
  return `${[head, ...lines].join("\n")}\n`;
}

function resultLines(result: Result): readonly string[] {
  const open = result.checkpointId === null || result.phase === "idle" ? "" : `, ${result.checkpointId} is open`;
  return [
    `  phase: ${result.phase}${open}`,
    ...(result.ready === undefined ? [] : [`  ready: ${result.ready ? "yes" : "no"}`]),
    ...participantLines(result),
    ...blockerLines(result),
    ...checkpointLines(result),
    ...receiptLines(result),
    ...(result.failures ?? []).map(
      ({ role, instance, problem }) => `  failed: ${role} ${instance}: ${problem.code}: ${problem.message}`,
    ),
    ...(result.warnings ?? []).map((warning) => `  warning: ${warning}`),
  ];
}

function participantLines({ participants = [], awaited = [] }: Result): readonly string[] {
  return [
    ...participants.map(({ role, instance, workers, mode, endpoint }) => {
      const at = endpoint === null ? "" : `, ${endpoint}`;
      return `  ${role} ${instance}: ${mode}, ${counted(workers.length, "worker")}${at}`;
    }),
    ...awaited.map(({ role, instance, operation }) => `  awaited: ${role} ${instance} has to answer ${operation}`),
  ];
}

function blockerLines({ blockers = [], blockerCount = blockers.length }: Result): readonly string[] {
  const lines = blockers
    .slice(0, maxListed)
    .map(
      ({ role, instance, rollout, attempt, reason, sinceMs }) =>
        `  blocked by ${rollout}/${attempt} at ${role} ${instance}: ${reason}, since ${new Date(sinceMs).toISOString()}`,
    );
  return blockerCount > lines.length ? [...lines, `  and ${blockerCount - lines.length} more blockers`] : lines;
}

function checkpointLines(result: Result): readonly string[] {
  const { continued, restarts, cut, holdings, preparedAtMs, capturedAtMs, restorableAtMs, restorable } = result;
  const cuts = Object.entries(cut ?? {}).map(([stream, sequence]) => `${stream} up to ${sequence}`);
  return [
    ...(continued === undefined ? [] : [`  can be continued: ${episodes(continued)}`]),
    ...(restarts === undefined ? [] : [`  would start over: ${episodes(restarts)}`]),
    ...cuts.map((text) => `  cut: ${text}`),
    ...(holdings ?? []).map(
      ({ role, instance, sessions, digest }) =>
        `  ${role} ${instance}: ${counted(sessions, "session")}, ${digest.slice(0, 12)}`,
    ),
    ...instantLines({ prepared: preparedAtMs, captured: capturedAtMs, restorable: restorableAtMs }),
    ...(restorable === undefined ? [] : [`  restorable: ${listed(restorable)}`]),
  ];
}

function instantLines(instants: Readonly<Record<string, number | undefined>>): readonly string[] {
  return Object.entries(instants).flatMap(([name, atMs]) =>
    atMs === undefined ? [] : [`  ${name}: ${new Date(atMs).toISOString()}`],
  );
}

function receiptLines({ receipt = [] }: Result): readonly string[] {
  return receipt.flatMap(({ role, instance, expected, found, continued, restarted, leftOut }) => [
    `  ${role} ${instance}: ${expected === found ? "found what was expected" : `expected ${expected}, found ${found}`}`,
    `    continued: ${episodes(continued)}`,
    ...(restarted.length === 0 ? [] : [`    starts over: ${episodes(restarted)}`]),
    ...leftOut.map(({ rollout, attempt, why }) => `    left out: ${rollout}/${attempt}: ${why}`),
  ]);
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

function episodes(of: readonly Episode[]): string {
  return listed(of.map(({ rollout, attempt }) => `${rollout}/${attempt}`));
}

function listed(names: readonly string[]): string {
  if (names.length === 0) return "none";
  const more = names.length > maxListed ? ` and ${names.length - maxListed} more` : "";
  return `${names.slice(0, maxListed).join(", ")}${more}`;
}
