/** Foreign errors become ours at this border: what the caller may do next is in the code, what happened is in the cause. */
import { HoldpointError } from "@holdpoint/errors";
import { JetStreamApiCodes, JetStreamApiError } from "@nats-io/jetstream";
import {
  AuthorizationError,
  InvalidArgumentError,
  InvalidSubjectError,
  NoRespondersError,
  PermissionViolationError,
  UserAuthenticationExpiredError,
} from "nats";

/** Answers that say that there is no such thing, not that the server is in trouble. */
const notFound: ReadonlySet<number> = new Set([
  JetStreamApiCodes.ConsumerNotFound,
  JetStreamApiCodes.StreamNotFound,
  JetStreamApiCodes.NoMessageFound,
]);

/** An answer of the JetStream API that is an error, from whichever place it was read. */
export interface ApiFailure {
  /** In the manner of HTTP. */
  readonly code: number;
  readonly err_code: number;
  readonly description: string;
}

/** What `error` means to a caller of ours. An error that is ours already stays as it is. */
export function translate(error: unknown, doing: string): HoldpointError {
  if (HoldpointError.is(error)) return error;
  if (error instanceof JetStreamApiError) return refusal(error.apiError(), doing, error);
  const reason = error instanceof Error ? error.message : String(error);
  const denied = findCause(error, [PermissionViolationError, AuthorizationError, UserAuthenticationExpiredError]);
  if (denied !== undefined) {
    const advice = "check the user, its password and its permissions in nats.conf";
    return new HoldpointError("unauthorized", `the broker does not allow ${doing}: ${denied.message}; ${advice}`, {
      cause: error,
    });
  }
  if (findCause(error, [InvalidArgumentError, InvalidSubjectError]) !== undefined) {
    return new HoldpointError("invalid_request", `${doing}: ${reason}`, { cause: error });
  }
  const nobody = findCause(error, [NoRespondersError]) !== undefined;
  const what = nobody ? "nobody listens there now" : `no answer (${reason})`;
  return new HoldpointError("unavailable", `${doing}: ${what}`, { cause: error, details: { nobody } });
}

/** What a refusal of the JetStream API means. Trouble of the server, and too much at once, may be tried again. */
export function refusal(failure: ApiFailure, doing: string, cause?: unknown): HoldpointError {
  const { code, err_code: apiCode, description } = failure;
  const options = { details: { apiCode, description }, cause };
  if (notFound.has(apiCode)) return new HoldpointError("not_found", `${doing}: ${description}`, options);
  const temporary = code >= 500 || code === 429;
  return new HoldpointError(temporary ? "unavailable" : "invalid_request", `${doing}: ${description}`, options);
}

type ErrorType = abstract new (...args: never[]) => Error;

/** `error`, or an error that caused it, where it is of one of `types`: nats.js wraps some of its own. */
function findCause(error: unknown, types: readonly ErrorType[]): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  return types.some((type) => error instanceof type) ? error : findCause(error.cause, types);
}
