/** The users of `nats.conf`, and their passwords. Passwords are never logged, and stand in no error. */
import { HoldpointError } from "@holdpoint/errors";
import { randomBytes } from "node:crypto";
import * as z from "zod";

/** Who connects: the roles; `operator` for the `nats` command line; `web` over WebSocket alone; `sys` for the server itself. */
export const brokerUsers = [
  "coordinator",
  "environment",
  "agent",
  "resources",
  "model",
  "trainer",
  "operator",
  "web",
  "sys",
] as const;
export type BrokerUser = (typeof brokerUsers)[number];

/** What a client connects with. */
export interface Credentials {
  readonly user: string;
  readonly password: string;
  /** Only there may this user read the answers to its requests. */
  readonly inboxPrefix: string;
}

export type Passwords = Readonly<Record<BrokerUser, string>>;

/** Characters that need no escape in a URL, a shell, or the server's configuration. */
const Password = z.string().regex(/^[A-Za-z0-9_.~-]{8,128}$/);
const PasswordByUser = z.record(z.enum(brokerUsers), Password);

/** The variable from which `nats.conf` reads the password of `user`. */
export function passwordVariable(user: BrokerUser): string {
  return `HOLDPOINT_${user.toUpperCase()}_PASSWORD`;
}

export function credentialsOf(user: string, password: string): Credentials {
  return { user, password, inboxPrefix: `_INBOX_${user}` };
}

/**
 * A password for every user: those `given`, random ones else.
 *
 * @throws HoldpointError `invalid_request` where a given one has other characters than `A-Z a-z 0-9 _ . ~ -`, or not 8 to 128
 */
export function passwords(given: Partial<Passwords> = {}): Passwords {
  const all = Object.fromEntries(
    brokerUsers.map((user) => [user, given[user] ?? randomBytes(24).toString("base64url")]),
  );
  const parsed = PasswordByUser.safeParse(all);
  if (parsed.success) return parsed.data;
  const users = parsed.error.issues.map(({ path }) => path.join("."));
  const rule = "expected 8 to 128 of A-Z a-z 0-9 _ . ~ -";
  throw new HoldpointError("invalid_request", `the password of ${users.join(", ")} cannot be used: ${rule}`);
}
