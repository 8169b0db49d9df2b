import { defaultLeaseGraceMs } from "@holdpoint/checkpoint";
import { processSettings } from "@holdpoint/participant";
import { maxTimeoutMs } from "@holdpoint/schemas";
import * as z from "zod";

/** What the coordinator is told by its environment. */
export const Settings = z.object({
  ...processSettings,
  /** Where the server's monitoring answers, such as `http://127.0.0.1:8222`: only there it says whether it syncs every write. */
  HOLDPOINT_MONITOR_URL: z.url({ protocol: /^https?$/ }).optional(),
  /** How long what is open outlives the deadline of its latest command, in milliseconds: then everybody serves again. */
  HOLDPOINT_LEASE_GRACE_MS: z.coerce.number().int().nonnegative().max(maxTimeoutMs).default(defaultLeaseGraceMs),
  /** A collector of OpenTelemetry that takes spans by OTLP over HTTP, such as `http://127.0.0.1:4318`; absent: none. */
  OTEL_EXPORTER_OTLP_ENDPOINT: z.preprocess(
    (value) => (value === "" ? undefined : value), // as OpenTelemetry has it
    z.url({ protocol: /^https?$/ }).optional(),
  ),
  /** Whether a stream that promises less than `nats.conf` gives is good enough. */
  HOLDPOINT_ALLOW_WEAK: z.enum(["yes", "no"]).default("no"),
});
export type Settings = z.infer<typeof Settings>;
