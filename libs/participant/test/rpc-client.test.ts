import { HoldpointError } from "@holdpoint/errors";
import { type Call, Directory, type Messenger, RpcClient } from "@holdpoint/participant";
import { type ControlEvent, rpcSubject } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import * as z from "zod";
import { episodeOf, turns } from "./room.ts";

type Answer = object | Error | "silence";

/** A messenger that answers with these, one after the other; with the last for ever. */
class Line implements Messenger {
  readonly asked: { readonly subject: string; readonly body: string }[] = [];
  readonly #answers: readonly Answer[];

  constructor(...answers: readonly Answer[]) {
    this.#answers = answers;
  }

  request(subject: string, body: string, { signal }: { readonly signal?: AbortSignal }): Promise<Uint8Array> {
    const answer = this.#answers[Math.min(this.asked.length, this.#answers.length - 1)];
    this.asked.push({ subject, body });
    return new Promise((resolve, reject) => {
      if (answer instanceof Error) reject(answer);
      else if (answer !== "silence") resolve(new TextEncoder().encode(JSON.stringify(answer)));
      signal?.addEventListener("abort", () => reject(new HoldpointError("unavailable", "given up")));
    });
  }

  async subscribe(): Promise<{ stop(): void }> {
    return { stop: () => {} };
  }
}

const nobody = new HoldpointError("unavailable", "nobody listens there now");
const done = { ok: true, data: { result: 7 } };

function refusal(code: string): object {
  return { ok: false, problem: { code, message: "no", details: { attempt: 0 } } };
}

type Rest = Pick<Call<unknown>, "signal" | "again">;

function ask(line: Line, directory = new Directory(), rest: Rest = {}) {
  return new RpcClient(line, "room", directory).call({
    episode: episodeOf("r1"),
    role: "resources",
    instance: "main",
    method: "tool",
    body: { name: "ls" },
    reply: z.object({ result: z.number() }),
    ...rest,
  });
}

function joined(instance: string): ControlEvent {
  const data = {
    role: "resources" as const,
    instance,
    worker: "0",
    incarnation: "life-2",
    mode: "exported" as const,
    endpoint: null,
    announcedSequence: 1,
    announcedAtMs: 1,
    lastAtMs: null,
  };
  return { type: "participant.joined", data };
}

function show(directory: Directory, event: ControlEvent): void {
  directory.apply({ event, sequence: 1, index: 0, subject: "", timeMs: 0, incarnation: "coordinator" });
}

test("a call is repeated, word for word, over nobody, a lost answer and a closed admission, until there is a reply", async () => {
  const line = new Line(nobody, nobody, refusal("admission_closed"), { hello: 1 }, done);
  expect(await ask(line)).toEqual({ result: 7 });
  const subject = rpcSubject("room", episodeOf("r1"), "resources", "tool");
  expect(new Set(line.asked.map(({ body }) => body))).toEqual(new Set(['{"to":"main","name":"ls"}']));
  expect(new Set(line.asked.map((request) => request.subject))).toEqual(new Set([subject]));
  expect(line.asked.length).toBe(5);
});

test("whoever calls is told of each request that is repeated: by the code of its answer, or that there was none", async () => {
  const line = new Line(nobody, refusal("unavailable"), refusal("admission_closed"), done);
  const told: unknown[] = [];
  await ask(line, new Directory(), { again: (code) => told.push(code) });
  expect(told).toEqual([undefined, "unavailable", "admission_closed"]);
});

test("a call that the callee took with it in its end is asked of its next incarnation at once", async () => {
  const line = new Line("silence", done);
  const directory = new Directory();
  const calling = ask(line, directory);
  await turns();
  show(directory, joined("other"));
  await turns();
  expect(line.asked.length).toBe(1);
  show(directory, joined("main"));
  expect(await calling).toEqual({ result: 7 });
  expect(line.asked.length).toBe(2);
});

test.each(["stale_attempt", "not_found", "session_conflict", "invalid_request"])(
  "a refusal is passed on as it is, and not repeated (%s)",
  async (code) => {
    const line = new Line(refusal(code));
    await expect(ask(line)).rejects.toMatchObject({ code, message: "no", details: { attempt: 0 } });
    expect(line.asked.length).toBe(1);
  },
);

test.each<readonly [string, Answer]>([
  ["in a request", "silence"],
  ["between two", nobody],
])("a call ends with its signal, %s, and asks no more", async (_, answer) => {
  const line = new Line(answer);
  const controller = new AbortController();
  const calling = ask(line, new Directory(), { signal: controller.signal });
  await turns();
  controller.abort(new Error("retired"));
  await expect(calling).rejects.toThrow("retired");
  const { length } = line.asked;
  await turns();
  expect(line.asked.length).toBe(length);
});

test("a call whose signal is aborted already asks nothing", async () => {
  const line = new Line(done);
  await expect(ask(line, new Directory(), { signal: AbortSignal.abort(new Error("retired")) })).rejects.toThrow(
    "retired",
  );
  expect(line.asked).toEqual([]);
});

test("a reply that is none of the method's is an error that names who gave it", async () => {
  await expect(ask(new Line({ ok: true, data: { result: "seven" } }))).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("resources main answered tool"),
  });
});
