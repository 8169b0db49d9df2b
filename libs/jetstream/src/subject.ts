/** Subjects that are written to or expected: exact ones alone. The server stores `a.*` literally where it is published to. */
import { HoldpointError } from "@holdpoint/errors";

/** Tokens of one or more printable characters without blanks, dots and wildcards, with dots between. */
const exact = /^[^\s.*>\p{Cc}]+(?:\.[^\s.*>\p{Cc}]+)*$/u;

/** @throws HoldpointError `invalid_request` where `subject` has a wildcard, a blank or an empty token */
export function exactSubject(subject: string): string {
  if (exact.test(subject)) return subject;
  const rule = "expected tokens with dots between them, without wildcards and blanks";
  throw new HoldpointError("invalid_request", `the subject ${JSON.stringify(subject)} cannot be written to: ${rule}`, {
    details: { subject },
  });
}

/**
 * Whether an answer may go to `reply`. The asker names that subject, and we may publish where it may not: an answer on `control` or on
 * a log would be taken for our own word there.
 */
export function isInbox(reply: string | undefined): boolean {
  return reply?.startsWith("_INBOX") === true;
}
