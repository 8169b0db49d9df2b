/** A service that `nats micro ls`, `info` and `stats` show: endpoints that answer requests. */
import { HoldpointError, type ErrorCode } from "@holdpoint/errors";
import { type ServiceMsg, Svcm } from "@nats-io/services";
import { type Connection, internals } from "./connection.ts";
import { translate } from "./failure.ts";
import { traceparentOf } from "./message.ts";
import { isInbox } from "./subject.ts";

/** An answer; with an `error` it also carries the headers by which the `nats` command line and other clients know one. */
export interface ServiceReply {
  readonly body: string;
  readonly error?: { readonly code: ErrorCode; readonly message: string };
}

export interface ServiceEndpoint {
  /** One token. */
  readonly name: string;
  readonly subject: string;
  readonly metadata?: Readonly<Record<string, string>>;
  /** Many run at once. What it throws is answered as an error, its body
   * the problem as JSON; what is not a `HoldpointError` is also a fault of the connection's status. `traceparent`: the header of the
   * request, where it has one (W3C Trace Context). */
  readonly handler: (body: Uint8Array, traceparent?: string) => Promise<string | ServiceReply>;
}

export interface ServiceOptions {
  readonly name: string;
  /** A semantic version. */
  readonly version: string;
  readonly description: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly endpoints: readonly ServiceEndpoint[];
}

export interface RunningService {
  /** Takes no further requests; those that are here are still answered. */
  stop(): Promise<void>;
  /** Settles when it ends; with an error where nobody has stopped it, such as a subscription that was not allowed. */
  readonly stopped: Promise<Error | undefined>;
}

/** By code, in the manner of HTTP. All others are conflicts with what is: 409. */
const statusOf: Readonly<Partial<Record<ErrorCode, number>>> = {
  invalid_request: 400,
  rollout_id_required: 400,
  unauthorized: 401,
  not_found: 404,
  unavailable: 503,
  admission_closed: 503,
  deadline_exceeded: 504,
};
const conflict = 409;

/**
 * Serves until it is stopped or the connection closes; over reconnects. Services of one name share the requests.
 *
 * @returns once the broker knows of it
 * @throws HoldpointError `invalid_request` where a name or the version is malformed, `unavailable` where the connection is closed
 */
export async function serve(connection: Connection, options: ServiceOptions): Promise<RunningService> {
  const { name, version, description, metadata = {}, endpoints } = options;
  const { nats } = internals(connection);
  const counts = new Map<string, Counts>();
  try {
    const service = await new Svcm(nats).add({
      name,
      version,
      description,
      metadata: { ...metadata },
      statsHandler: async ({ subject }) => counts.get(subject) ?? {},
    });
    for (const endpoint of endpoints) {
      const count: Counts = { answered: 0, refused: 0, lastError: "" };
      counts.set(endpoint.subject, count);
      service.addEndpoint(endpoint.name, {
        subject: endpoint.subject,
        metadata: { ...endpoint.metadata },
        handler: (error, message) => void (error ?? answer(connection, endpoint, message, count)),
      });
    }
    await nats.flush();
    const stopped = service.stopped.then((error) => error ?? undefined);
    return { stopped, stop: async () => void (await service.stop()) };
  } catch (error) {
    throw translate(error, `serving ${name}`);
  }
}

/** The client counts requests and the time until `handler` returns, which says nothing of work that goes on after it. */
interface Counts {
  answered: number;
  refused: number;
  lastError: string;
}

/** Never throws: there is nobody to catch it. */
async function answer(
  connection: Connection,
  endpoint: ServiceEndpoint,
  message: ServiceMsg,
  count: Counts,
): Promise<void> {
  const { body, error } = await replyOf(connection, endpoint, message);
  if (!isInbox(message.reply)) return;
  if (error === undefined) {
    count.answered++;
    message.respond(body);
  } else {
    count.refused++;
    count.lastError = error.message;
    message.respondError(
      statusOf[error.code] ?? conflict,
      `${error.code}: ${error.message}`.replaceAll(/\s+/g, " "),
      body,
    );
  }
}

async function replyOf(
  connection: Connection,
  { name, handler }: ServiceEndpoint,
  { data, headers }: ServiceMsg,
): Promise<ServiceReply> {
  try {
    const reply = await handler(data, traceparentOf(headers));
    return typeof reply === "string" ? { body: reply } : reply;
  } catch (error) {
    if (!HoldpointError.is(error)) connection.fault(error);
    const ours = HoldpointError.is(error) ? error : new HoldpointError("unavailable", `${name} failed`);
    const { code, message, details } = ours;
    return { body: JSON.stringify({ code, message, details }), error: { code, message } };
  }
}
