/** Servers that the kit plays: they answer every request on a role's rpc subjects. */
import type { Connection } from "@holdpoint/jetstream";
import { parseJson } from "@holdpoint/eventsourcing";
import { type Content, Episode, filters, parseRpcSubject, type Role, seedSubject } from "@holdpoint/schemas";
import { digest } from "../simulated-process.ts";

/** What a method answers. */
export type Play = (episode: Episode, method: string, body: unknown) => Promise<object>;

/** Answers as instance `main` of `role`. @returns how to stop */
export async function playServer(
  connection: Connection,
  { run, role }: { readonly run: string; readonly role: Role },
  play: Play,
): Promise<() => void> {
  const subjects = [filters.rpcOf(run, role), seedSubject(run, role, "main")];
  const subscriptions = await Promise.all(
    subjects.map((subject) =>
      connection.subscribe(subject, ({ subject: asked, data, respond }) => {
        const json = parseJson(data);
        const body = json.ok ? json.value : {};
        const address = parseRpcSubject(asked);
        const episode = address?.kind === "call" ? address.episode : Episode.parse(body);
        const method = address?.kind === "call" ? address.method : "seed";
        const answer = (reply: object) => respond(JSON.stringify({ ok: true, data: reply }));
        play({ rollout: episode.rollout, attempt: episode.attempt }, method, body).then(answer, () => {});
      }),
    ),
  );
  return () => {
    for (const subscription of subscriptions) subscription.stop();
  };
}

/** A small text as events carry it. */
export function contentOf(text: string): Content {
  return { digest: digest(text), bytes: Buffer.byteLength(text), text };
}
