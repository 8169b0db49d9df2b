/** The steps of an activation: in the log before anything is made of them, and answered from there when it runs again. */
import { HoldpointError } from "@holdpoint/errors";
import { type AgentSession, defineAgent, messageText, sha256 } from "@holdpoint/participant";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, ask, until } from "./agent-room.ts";
import { episodeOf, turns } from "./room.ts";

const r1 = episodeOf("r1");
const seed = z.looseObject({});

function agentOf(activate: (session: AgentSession<z.infer<typeof seed>>) => Promise<string>) {
  return defineAgent({ name: "writer", mode: "exported", seed, activate });
}

/** Three turns, with two tool calls after each but the last. */
const writing = agentOf(async (session) => {
  const said: string[] = [];
  for (let turn = 0; turn < 3; turn++) {
    said.push(messageText(await session.model(ask(...said))));
    if (turn === 2) break;
    said.push(await session.tool("look", `{"at":${turn}}`), await session.tool("count", "{}"));
  }
  return said.join("; ");
});
const written = 'turn 0; look: {"at":0}; count: {}; turn 1; look: {"at":1}; count: {}; turn 2';

const never = () => new Promise<never>(() => {});

let room: AgentRoom;
beforeEach(async () => {
  room = await AgentRoom.open();
});
afterEach(() => room.model.stop());

describe("an activation", () => {
  test("takes its steps one after the other, and each is in the log", async () => {
    await room.agent(writing);
    const ended = await room.run(r1);
    expect(ended).toMatchObject({ ok: true, data: { status: "ended", output: { text: written } } });
    const turn = ["call.requested", "call.received"];
    const round = [...turn, "tool.returned", "tool.returned"];
    expect(await room.typesOf(r1)).toEqual([
      "session.seeded",
      "activation.started",
      ...round,
      ...round,
      ...turn,
      "activation.ended",
    ]);
    expect(room.tools).toEqual([
      'look({"at":0}) as 0/0',
      "count({}) as 0/1",
      'look({"at":1}) as 1/0',
      "count({}) as 1/1",
    ]);
    expect(room.model.asked.map(({ body }) => sha256(body))).toEqual(
      (await room.saidOf(r1)).flatMap((event) => (event.type === "call.requested" ? [event.data.request] : [])),
    );
    expect(room.model.asked[1]?.headers).toMatchObject({
      "x-holdpoint-rollout": "r1",
      "x-holdpoint-attempt": "0",
      "x-holdpoint-turn": "1",
      "x-holdpoint-aware": "1",
      "x-holdpoint-restart": "0",
    });
  });

  test("[L9] goes on by itself in the process that comes after, and what the log has is not asked again", async () => {
    const gate = Promise.withResolvers<string>();
    room.tool = (name, input) => (input === '{"at":1}' ? gate.promise : Promise.resolve(`${name}: ${input}`));
    const before = await room.agent(writing);
    void room.run(r1);
    await until(() => room.tools.includes('look({"at":1}) as 1/0'));
    await before.stop();
    room.tool = async (name, input) => `${name}: ${input}`;
    const agent = await room.agent(writing);
    await until(() => agent.sessions.get(r1)?.state.output !== null);
    expect(agent.sessions.get(r1)?.state.output?.text).toBe(written);
    expect(room.model.asked.map(({ turn }) => turn)).toEqual([0, 1, 2]);
    expect(room.tools.filter((tool) => tool.startsWith("look")).length).toBe(3); // the one that was under way is asked again
    const types = await room.typesOf(r1);
    expect(types.filter((type) => type === "activation.started")).toHaveLength(1);
  });

  test("names tool calls before its first model call apart from those after it", async () => {
    await room.agent(
      agentOf(async (session) => {
        const first = await session.tool("look", "1");
        await session.model(ask(first));
        return session.tool("look", "2");
      }),
    );
    await room.run(r1);
    expect(room.tools).toEqual(["look(1) as 0/0", "look(2) as 0/1"]);
  });

  test("may ask for several steps at once: they are taken in the order in which it asked", async () => {
    const gate = Promise.withResolvers<string>();
    room.tool = async (_, input) => (input === "1" ? gate.promise : "second");
    await room.agent(
      agentOf(async (session) => {
        const results = await Promise.all(["1", "2"].map((input) => session.tool("look", input)));
        return results.join();
      }),
    );
    const ended = room.run(r1);
    await until(() => room.tools.length > 0);
    await turns();
    expect(room.tools).toEqual(["look(1) as 0/0"]);
    gate.resolve("first");
    expect(await ended).toMatchObject({ data: { output: { text: "first,second" } } });
    expect(room.tools).toEqual(["look(1) as 0/0", "look(2) as 0/1"]);
  });

  test("[F10] that throws has failed, and its author's words are told to the log of its process alone", async () => {
    await room.agent(agentOf(() => Promise.reject(new Error("no such file: key=sk-secret"))));
    const reply = await room.run(r1);
    const problem = { code: "invalid_request", message: expect.stringMatching(/activate of writer threw/) };
    expect(reply).toMatchObject({ ok: false, problem });
    expect(JSON.stringify([reply, await room.said()])).not.toMatch(/sk-secret/);
    expect(room.troubles.join()).toMatch(/r1\/0.*sk-secret/);
  });

  test("that gives no text is refused", async () => {
    const text = z.custom<string>(); // as of somebody who has no types
    await room.agent(agentOf(async () => text.parse(7)));
    const problem = { code: "invalid_request", message: expect.stringMatching(/writer.*number.*string/) };
    expect(await room.run(r1)).toMatchObject({ ok: false, problem });
  });

  test("has failed with a step that failed, whatever it makes of that", async () => {
    room.model.reply = () => ({ role: "user" });
    await room.agent(
      agentOf((session) =>
        session.model(ask()).then(
          () => "well",
          () => "well all the same",
        ),
      ),
    );
    expect(await room.run(r1)).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
    expect(await room.typesOf(r1)).not.toContain("call.received");
  });
});

test("[L3] an activation that has ended is not run again by whoever asks again, and gives the same output", async () => {
  let runs = 0;
  await room.agent(
    agentOf(async (session) => {
      runs += 1;
      return messageText(await session.model(ask()));
    }),
  );
  const ended = { ok: true, data: { status: "ended", output: { text: "turn 0" } } };
  expect([await room.run(r1), await room.activate(r1)]).toMatchObject([ended, ended]);
  expect([runs, (await room.typesOf(r1)).filter((type) => type === "activation.ended")]).toEqual([
    1,
    ["activation.ended"],
  ]);
});

describe("a model that refuses for good", () => {
  test("has its code told to whoever asks for the activation", async () => {
    room.model.instead = { status: 409, body: '{"error":{"message":"asked otherwise","code":"session_conflict"}}' };
    await room.agent(writing);
    const problem = { code: "session_conflict", message: expect.stringMatching(/asked otherwise/) };
    expect(await room.run(r1)).toMatchObject({ ok: false, problem });
  });

  test.each([
    ["with a code of its own", 400, '{"error":{"message":"no","code":"context_length_exceeded"}}', /refused: no/],
    ["without words", 404, "<html>", /status 404/],
    ["with success and no completion", 200, '{"choices":[]}', /no chat completion[^]*choices/],
    ["with success and no JSON", 200, "<html>", /no chat completion/],
  ])("%s makes the request invalid, and is not asked again", async (_, status, body, message) => {
    room.model.instead = { status, body };
    await room.agent(writing);
    const problem = { code: "invalid_request", message: expect.stringMatching(message) };
    expect(await room.run(r1)).toMatchObject({ ok: false, problem });
    expect(room.model.asked).toHaveLength(1);
  });
});

test("an activation whose author asks for that is tried again, and its steps are answered from the log", async () => {
  let tries = 0;
  await room.agent(
    agentOf(async (session) => {
      const said = messageText(await session.model(ask()));
      tries += 1;
      if (tries === 1) throw new HoldpointError("unavailable", "the disk is full");
      return said;
    }),
  );
  expect(await room.run(r1)).toMatchObject({ ok: false, problem: { code: "unavailable" } });
  expect(await room.activate(r1)).toMatchObject({ data: { output: { text: "turn 0" } } });
  expect(room.model.asked).toHaveLength(1);
});

function content(text: string) {
  return { digest: sha256(text), bytes: text.length, text };
}

test("[F5] a log that does not say what its tool calls were is answered from as well", async () => {
  const before = await room.agent(agentOf(never));
  await room.seed(r1);
  const response = content(JSON.stringify({ role: "assistant", content: "turn 0" }));
  await before.record(
    { type: "activation.started", data: { ...r1, policyVersion: 3 } },
    { type: "call.requested", data: { ...r1, turn: 0, request: sha256(JSON.stringify(ask())) } },
    { type: "call.received", data: { ...r1, turn: 0, response } },
    { type: "tool.returned", data: { ...r1, turn: 0, index: 0, result: content("seen") } },
  );
  await before.stop();
  const agent = await room.agent(
    agentOf(async (session) => {
      const said = messageText(await session.model(ask()));
      return `${said}: ${await session.tool("look", "{}")}, ${await session.tool("look", "[]")}`;
    }),
  );
  await until(() => agent.sessions.get(r1)?.state.output !== null);
  expect(agent.sessions.get(r1)?.state.output?.text).toBe("turn 0: seen, look: []");
  expect(room.tools).toEqual(["look([]) as 0/1"]);
});

/** An agent that does `first` in its first life, and `second` in every other. */
function changing(first: (session: AgentSession<unknown>) => Promise<string>, second: typeof first) {
  let lives = 0;
  return agentOf((session) => {
    lives += 1;
    return (lives === 1 ? first : second)(session);
  });
}

describe("an activation that runs again and is not the same", () => {
  test.each([
    ["asks something else", async (session: AgentSession<unknown>) => messageText(await session.model(ask("else")))],
    ["calls a tool first", (session: AgentSession<unknown>) => session.tool("look", "{}")],
    ["ends before", async () => "early"],
  ])("is told so where it %s, and how to make it so", async (_, second) => {
    const definition = changing(async (session) => {
      await session.model(ask("this"));
      return never();
    }, second);
    const before = await room.agent(definition);
    void room.run(r1);
    await until(async () => (await room.typesOf(r1)).includes("call.received"));
    await before.stop();
    await room.agent(definition);
    await turns();
    const problem = {
      code: "invalid_checkpoint_state",
      message: expect.stringMatching(/writer for r1, attempt 0, is not deterministic.*no clock/),
    };
    expect(await room.activate(r1)).toMatchObject({ ok: false, problem });
  });

  test.each([
    ["another tool", (session: AgentSession<unknown>) => session.tool("count", "{}")],
    ["the tool with other arguments", (session: AgentSession<unknown>) => session.tool("look", "[]")],
    ["the model", async (session: AgentSession<unknown>) => messageText(await session.model(ask()))],
  ])("is told so where it calls %s", async (_, second) => {
    const definition = changing(async (session) => {
      await session.tool("look", "{}");
      return never();
    }, second);
    const before = await room.agent(definition);
    void room.run(r1);
    await until(async () => (await room.typesOf(r1)).includes("tool.returned"));
    await before.stop();
    await room.agent(definition);
    expect(await room.activate(r1)).toMatchObject({ ok: false, problem: { code: "invalid_checkpoint_state" } });
  });

  test("is told so where the model was asked something else and has not answered yet", async () => {
    const definition = changing(
      async (session) => messageText(await session.model(ask("this"))),
      async (session) => messageText(await session.model(ask("that"))),
    );
    room.model.holds = () => true;
    const before = await room.agent(definition);
    void room.run(r1);
    await until(() => room.model.asked.length === 1);
    await before.stop();
    await room.agent(definition);
    expect(await room.activate(r1)).toMatchObject({ ok: false, problem: { code: "invalid_checkpoint_state" } });
    expect(room.model.asked).toHaveLength(1);
  });
});
