/** What of our own environment goes to which process of a run that is up; the rest is refused or named, never dropped in silence. */
import type { Environment } from "@holdpoint/broker";
import { HoldpointError } from "@holdpoint/errors";
import type { ProcessName } from "./run-processes.ts";

export type ProcessSettings = Partial<Readonly<Record<ProcessName, Readonly<Record<string, string>>>>>;

export interface HandedOn {
  readonly settings: ProcessSettings;
  /** Variables of ours that no process is told, such as a trainer's: none is started. */
  readonly unused: readonly string[];
}

/** `LOG_LEVEL` and `OTEL_…`, as all variables of other people, go to every process anyway. */
const handedOn = {
  coordinator: ["HOLDPOINT_LEASE_GRACE_MS", "HOLDPOINT_ALLOW_WEAK"],
  model: [
    "HOLDPOINT_MODEL_HOST",
    "HOLDPOINT_MODEL_PORT",
    "HOLDPOINT_HOLD_MS",
    "HOLDPOINT_POLICY_WAIT_MS",
    "HOLDPOINT_SCRIPT_FILE",
  ],
  resources: ["HOLDPOINT_MCP", "HOLDPOINT_MCP_URL"],
} as const;

const metrics = "HOLDPOINT_METRICS";
const measured = ["coordinator", "model", "resources", "agent", "environment"] as const satisfies ProcessName[];

const ownBroker = "`up` starts a broker of its own; unset it, or start the processes by hand";
const oneOfEach = "`up` starts one process of each role, called main; start others by hand";

/** What would be another run than the one that `up` starts, and what to do. */
const refused: ReadonlyMap<string, string> = new Map([
  ["NATS_URL", ownBroker],
  ["NATS_USER", ownBroker],
  ["NATS_PASSWORD", ownBroker],
  ["HOLDPOINT_MONITOR_URL", ownBroker],
  ["HOLDPOINT_INSTANCE", oneOfEach],
  ["HOLDPOINT_WORKER", oneOfEach],
  ["HOLDPOINT_RESOURCES", oneOfEach],
  ["HOLDPOINT_STATE_DIR", "each process gets a folder of its own; say by --folder where they are"],
]);

/** Of the command line itself. */
const own: ReadonlySet<string> = new Set([
  "HOLDPOINT_RUN",
  "HOLDPOINT_NATS_SERVER",
  "HOLDPOINT_CACHE",
  "HOLDPOINT_MARK",
  metrics,
  ...Object.values(handedOn).flat(),
]);

/**
 * What the processes of `up` are told of `env`. An empty variable counts as absent.
 *
 * @throws HoldpointError `invalid_request` that names every variable that cannot be handed on
 */
export function settingsFrom(env: Environment): HandedOn {
  const given = new Map(Object.entries(env).flatMap(([name, value]) => (value ? [[name, value] as const] : [])));
  requireUsable(given);
  const pick = (names: readonly string[]) =>
    Object.fromEntries(names.flatMap((name) => [...given].filter(([other]) => other === name)));
  const everywhere = pick([metrics]);
  return {
    settings: {
      ...Object.fromEntries(measured.map((name) => [name, everywhere])),
      coordinator: { ...everywhere, ...pick(handedOn.coordinator) },
      model: { ...everywhere, ...pick(handedOn.model) },
      resources: { ...everywhere, ...pick(handedOn.resources) },
    },
    unused: [...given.keys()].filter((name) => name.startsWith("HOLDPOINT_") && !own.has(name)),
  };
}

function requireUsable(given: ReadonlyMap<string, string>): void {
  const faults = [...given.keys()].flatMap((name) => {
    const why = refused.get(name);
    return why === undefined ? [] : [`${name}: ${why}`];
  });
  const port = given.get(metrics);
  if (port !== undefined && !/(^|:)0$/.test(port)) {
    faults.push(
      `${metrics}: one port cannot serve several processes; 0 lets each take a free one, which its log names`,
    );
  }
  if (faults.length === 0) return;
  throw new HoldpointError("invalid_request", `\`up\` cannot hand on what is set\n  ${faults.join("\n  ")}`);
}
