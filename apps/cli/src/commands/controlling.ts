/** One command to the coordinator of a run, as the operator may send it. */
import { useBroker } from "@holdpoint/broker";
import { Controller } from "@holdpoint/client";
import { HoldpointError } from "@holdpoint/errors";
import type { EventLog } from "@holdpoint/eventsourcing";
import { type Connection, connectTo, openLog } from "@holdpoint/jetstream";
import { type Outcome, parseCommand, type Operation } from "@holdpoint/schemas";
import * as z from "zod";
import { type CliContext, exitCodes } from "./context.ts";
import { outcomeText } from "./outcome-text.ts";

export interface Sending {
  readonly run: string;
  /** Milliseconds that the operation may take. */
  readonly timeout: number;
  readonly json: boolean;
}

/** How much longer than the operation an answer is waited for. */
const graceMs = 10_000;

/** Sends a command, prints what became of it, and says with which code to end. */
export async function send(
  context: CliContext,
  operation: Operation,
  { run, timeout, json }: Sending,
  body: object,
): Promise<number> {
  const parsed = parseCommand(operation, { ...body, timeoutMs: timeout });
  if (!parsed.success) {
    throw new HoldpointError("invalid_request", `${operation}: ${z.prettifyError(parsed.error)}`);
  }
  const connection = await connectAsOperator();
  try {
    const log = openLog(connection, run);
    await requireRun(log, run);
    const controller = new Controller({ connection, log, run });
    const patience = AbortSignal.timeout(timeout + graceMs);
    const outcome = await controller.command(parsed.data, { signal: patience }).catch((error: unknown) => {
      throw patience.aborted ? unanswered(run, timeout + graceMs) : error;
    });
    context.process.stdout.write(json ? `${JSON.stringify(outcome)}\n` : outcomeText(outcome));
    return codeOf(outcome);
  } finally {
    await connection.close();
  }
}

/** @throws HoldpointError `invalid_request` where no broker is named, else as `connectTo` */
export async function connectAsOperator(): Promise<Connection> {
  const broker = useBroker();
  if (broker === undefined) {
    const advice = "set NATS_URL, NATS_USER and NATS_PASSWORD; `holdpoint up` starts one and says what to set";
    throw new HoldpointError("invalid_request", `no broker is named: ${advice}`);
  }
  const credentials = broker.credentialsOf("operator");
  return connectTo({
    url: broker.url,
    name: "holdpoint",
    ...(credentials !== undefined && { user: credentials.user, password: credentials.password }),
  });
}

function codeOf(outcome: Outcome): number {
  return outcome.ok ? exitCodes.ok : exitCodes.failed;
}

/** @throws HoldpointError `not_found` where the broker has no stream of the run */
async function requireRun(log: EventLog, run: string): Promise<void> {
  try {
    await log.lastSequence();
  } catch (error) {
    if (!HoldpointError.is(error, "not_found")) throw error;
    const advice = "name it with --run or HOLDPOINT_RUN; `holdpoint up` starts one";
    throw new HoldpointError("not_found", `no such run on this broker: ${run} (no stream ${log.stream}); ${advice}`);
  }
}

function unanswered(run: string, waitedMs: number): HoldpointError {
  const later = "a coordinator that comes later obeys a resume or a retire, and refuses what is past its deadline";
  const text = `no coordinator of ${run} answered within ${waitedMs} ms; what was stored of the command stays in the log: ${later}`;
  return new HoldpointError("unavailable", text);
}
