/** What whoever writes policies may rely on, and what becomes of what they say. */
import { HoldpointError } from "@holdpoint/errors";
import { type ReplyOptions, serveJudge } from "@holdpoint/participant";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ask, type Asked, onlyPolicy, post, Room } from "./model-room.ts";

const fine = { role: "assistant", content: "fine" } as const;

let room: Room;
beforeEach(() => {
  room = new Room();
});
afterEach(() => room.stop());

describe("a policy", () => {
  test("is given the messages and the request as they came, and answers with what it says", async () => {
    const seen: unknown[] = [];
    const policies = onlyPolicy(async (messages, { request }) => {
      seen.push(JSON.stringify(messages), request["temperature"], request["tools"]);
      return { message: { ...fine, refusal: null, tool_calls: [] }, tokens: { prompt: 7, completion: 2 } };
    });
    const messages = [
      { content: "be brief", role: "system", name: "x" },
      { role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] },
    ];
    const { url } = await room.serve(policies);
    const { body } = await ask(url, {}, { messages, temperature: 0.5, tools: [{ type: "function" }] });
    expect(seen).toEqual([JSON.stringify(messages), 0.5, [{ type: "function" }]]);
    expect(body).toMatchObject({
      id: "chatcmpl-r1-0",
      choices: [{ message: { ...fine, refusal: null, tool_calls: [] }, finish_reason: "stop" }],
      usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
    });
  });

  test("is asked once for a call, whoever asks again, and its version is in the ledger", async () => {
    let asked = 0;
    const { url } = await room.serve(onlyPolicy(() => ({ message: { ...fine, content: `${(asked += 1)}` } })));
    const [first, again] = [await ask(url), await ask(url)];
    expect([first, asked]).toEqual([again, 1]);
    expect((await room.calls()).map(({ type }) => type)).toEqual(["call.started", "call.finished", "call.delivered"]);
    expect((await room.calls())[1]).toMatchObject({ data: { policyVersion: 3, staging: null } });
  });

  test("that says nothing of tokens has words and single signs counted", async () => {
    const { url } = await room.serve(onlyPolicy(() => ({ message: fine })));
    const { body } = await ask(url, {}, { messages: [{ role: "user", content: "a, b" }] });
    expect(body).toMatchObject({ usage: { prompt_tokens: 3, completion_tokens: 1 } });
  });

  test("has what it stages in the blobs, by the digest that the ledger names", async () => {
    const { url } = await room.serve(onlyPolicy(() => ({ message: fine, staging: { logprob: -1 } })));
    await ask(url);
    const finished = (await room.calls()).find(({ type }) => type === "call.finished");
    const staging = finished?.type === "call.finished" ? finished.data.staging : null;
    expect(await room.blobs.get(staging ?? "")).toBe('{"logprob":-1}');
  });

  test.each([
    [
      "throws",
      () => {
        throw new RangeError("out of memory");
      },
      "out of memory",
    ],
    [
      "says no assistant message",
      () => ({ message: { role: "user" as never, content: "fine" } }),
      "policy only replied",
    ],
  ])("that %s leaves no row; its caller is told that no repetition mends it, the log why", async (_, reply, why) => {
    const { url } = await room.serve(onlyPolicy(reply));
    const answered = await ask(url);
    expect(answered).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
    expect(JSON.stringify(answered.body)).toContain("policy only failed in its own code");
    expect(JSON.stringify(answered.body)).not.toContain(why);
    expect((await room.calls()).map(({ type }) => type)).toEqual(["call.started"]);
    expect(room.lines.join()).toContain(why);
  });

  test("that counts tokens in fractions leaves no row: the log could not be read again", async () => {
    const { url } = await room.serve(onlyPolicy(() => ({ message: fine, tokens: { prompt: 0.5, completion: 1 } })));
    expect(await ask(url)).toMatchObject({ status: 400 });
    expect((await room.calls()).map(({ type }) => type)).toEqual(["call.started"]);
    expect(room.lines.join()).toContain("policy only counts tokens that are no whole numbers");
  });

  test("without a version that can be written down is not asked", async () => {
    const policies = onlyPolicy(() => ({ message: fine }));
    const find = async (name: string, signal: AbortSignal) => ({
      ...(await policies.find(name, signal)),
      version: 1.5,
    });
    const { url } = await room.serve({ ...policies, find });
    expect(await ask(url)).toMatchObject({ status: 400 });
    expect(await room.calls()).toEqual([]);
    expect(room.lines.join()).toContain("policy only was found without a version");
  });

  test("says by its code what its caller does: unavailable is asked again, and is no mistake", async () => {
    const { url } = await room.serve(
      onlyPolicy(() => {
        throw new HoldpointError("unavailable", "no accelerator is free");
      }),
    );
    expect(await ask(url)).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
    expect(room.lines.join()).not.toContain("no accelerator is free");
  });

  test("that ignores that the attempt was retired holds up nobody", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<undefined>();
    const { url } = await room.serve(
      onlyPolicy(() => {
        begin(undefined);
        return new Promise(() => {});
      }),
    );
    const call = ask(url);
    await begun;
    const rollouts = [{ rollout: "r1", attempt: 0 }];
    await room.decide({ type: "rollouts.marked", data: { command: 1, rollouts } });
    await room.ask("retire", { checkpointId: null, rollouts });
    expect(await call).toMatchObject({ status: 409, body: { error: { code: "stale_attempt" } } });
  });

  test("is told when the attempt was retired, and its call leaves no row", async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<undefined>();
    const policies = onlyPolicy((_, { signal }) => {
      begin(undefined);
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    const { url } = await room.serve(policies);
    const call = ask(url);
    await begun;
    const rollouts = [{ rollout: "r1", attempt: 0 }];
    await room.decide({ type: "rollouts.marked", data: { command: 1, rollouts } });
    await room.ask("retire", { checkpointId: null, rollouts });
    expect(await call).toMatchObject({ status: 409, body: { error: { code: "stale_attempt" } } });
    expect((await room.calls()).map(({ type }) => type)).toEqual(["call.started"]);
  });
});

/** What the echo says was the seed. */
async function seedOf(url: string, asked: Asked, fields: object = {}): Promise<string | undefined> {
  return JSON.stringify((await ask(url, asked, fields)).body).match(/"content":"(\d+)"/)?.[1];
}

describe("the seed of a call", () => {
  const echo = onlyPolicy((_, { seed }: ReplyOptions) => ({ message: { ...fine, content: String(seed) } }));

  test("is that of its request, where it is a whole number of 32 bits, and made of it where it is not", async () => {
    const { url } = await room.serve(echo);
    expect(await seedOf(url, { turn: 0 }, { seed: 4_294_967_295 })).toBe("4294967295");
    expect(await seedOf(url, { turn: 1 }, { seed: -1 })).toBe("3590838775");
  });

  test("is made of the rollout and the turn, where the request says none: the same for every attempt", async () => {
    const { url } = await room.serve(echo);
    const seeds = [
      await seedOf(url, { rollout: "r1", attempt: 0, turn: 0 }),
      await seedOf(url, { rollout: "r1", attempt: 1, turn: 0 }),
      await seedOf(url, { rollout: "r1", attempt: 1, turn: 1 }),
      await seedOf(url, { rollout: "r2", attempt: 0, turn: 0 }),
    ];
    expect(seeds).toEqual(["4033883553", "4033883553", "783016306", "3141954124"]);
  });
});

test("[A5] a judge of the same policies serves on while a checkpoint is open, for callers that say nothing of themselves", async () => {
  const policies = onlyPolicy(() => ({ message: fine }));
  const { url, model } = await room.serve(policies);
  const http = await room.listen();
  serveJudge(policies, { http, logger: room.logger });
  await room.close(model);
  expect(await ask(url)).toMatchObject({ status: 503, body: { error: { code: "admission_closed" } } });
  expect(await post(http.url)).toMatchObject({ status: 200, body: { choices: [{ message: fine }] } });
  expect(await post(http.url, { messages: [] })).toMatchObject({
    status: 400,
    body: { error: { code: "invalid_request" } },
  });
  expect((await fetch(`${http.url}/v1/models`)).status).toBe(200);
  expect(await room.calls()).toEqual([]);
});

test("policies that can be followed no more end the server", async () => {
  const ended = Promise.reject(new Error("the stream is gone"));
  await room.serve({ ...onlyPolicy(() => ({ message: fine })), ended });
  await expect.poll(() => room.lost.map(String)).toEqual(["Error: the stream is gone"]);
});
