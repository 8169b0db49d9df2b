/** The commands as endpoints of a NATS service: `hp.<run>.ctl.<op>`, which `nats micro` shows. */
import type { ServiceEndpoint, ServiceReply } from "@holdpoint/jetstream";
import { type Operation, operations, Outcome, serviceSubject } from "@holdpoint/schemas";

/** One for each operation; `obey` answers with the outcome as JSON. */
export function endpointsOf(
  run: string,
  obey: (operation: Operation, body: Uint8Array, traceparent?: string) => Promise<string>,
): readonly ServiceEndpoint[] {
  return operations.map((operation) => ({
    name: operation,
    subject: serviceSubject(run, operation),
    handler: async (body, traceparent) => replyOf(await obey(operation, body, traceparent)),
  }));
}

/** The body is the outcome either way; of one that failed the headers tell too. */
function replyOf(body: string): ServiceReply {
  const value: unknown = JSON.parse(body);
  const outcome = Outcome.safeParse(value);
  return outcome.data?.ok === false ? { body, error: outcome.data.problem } : { body };
}
