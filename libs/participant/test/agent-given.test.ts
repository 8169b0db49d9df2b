/** What authors hand over that is not what a step takes, or a checkpoint holds: refused in words. */
import { type AgentSession, defineAgent, defineOpaqueAgent, type Harness } from "@holdpoint/participant";
import type { Json } from "@holdpoint/schemas";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, ask, until } from "./agent-room.ts";
import { episodeOf } from "./room.ts";

const r1 = episodeOf("r1");
let room: AgentRoom;
beforeEach(async () => {
  room = await AgentRoom.open();
});
afterEach(() => room.model.stop());

type Step = "boundary" | "tool" | "model";

/** As somebody without a compiler calls it. */
async function call(session: AgentSession<unknown>, step: Step, given: readonly unknown[]): Promise<unknown> {
  const result: unknown = await Reflect.apply(session[step], session, given);
  return result;
}

test.each<readonly [Step, readonly unknown[], RegExp]>([
  ["boundary", [{ a: 1 }], /writer.*boundary.*expected a function.*found an object/],
  ["boundary", [undefined], /writer.*boundary.*expected a function.*found undefined/],
  ["tool", ["add", { by: 1 }], /writer.*tool\("add".*expected.*JSON text.*found an object/],
  ["tool", [undefined, ""], /writer.*tool.*expected a name.*found undefined/],
  ["model", [undefined], /writer.*model.*expected.*messages.*found undefined/],
  ["model", [{ model: "m@1" }], /writer.*model.*expected[^]*messages/],
])("[S13] %s is refused at once where it is given %j", async (step, given, words) => {
  const activate = async (session: AgentSession<unknown>) => String(await call(session, step, given));
  await room.agent(defineAgent({ name: "writer", mode: "exported", seed: z.unknown(), activate }));
  const problem = { code: "invalid_request", message: expect.stringMatching(words) };
  expect(await room.run(r1)).toMatchObject({ ok: false, problem });
});

/** What a capture answers of a boundary that gives what is no JSON. */
async function refusalOf(): Promise<string> {
  room.model.close();
  await room.done("prepare", {});
  const { problem } = await room.obeyed("capture", { scope: [r1] });
  await room.letGo("c1", 1);
  expect(problem).toMatchObject({ code: "invalid_checkpoint_state" });
  return problem?.message ?? "";
}

const noJson = z.custom<Json>().parse({ at: new Date(0) });

/** Comes to one boundary, and waits for the model behind it. */
async function waitAtModel(session: AgentSession<unknown>): Promise<string> {
  await session.boundary(() => noJson);
  await session.model(ask("go on"));
  return "done";
}

async function launch(): Promise<Harness> {
  return {
    handle: "h",
    done: new Promise(() => {}),
    pause: async () => {},
    continue: async () => {},
    state: () => noJson,
    stop: async () => {},
  };
}

test("a boundary that gives no JSON is told in a line that names the session and boundary()", async () => {
  room.model.holds = () => true;
  await room.agent(defineAgent({ name: "writer", mode: "exported", seed: z.unknown(), activate: waitAtModel }));
  await room.seed(r1);
  void room.activate(r1);
  await until(() => room.model.asked.length > 0);
  expect(await refusalOf()).toMatch(/^what r1, attempt 0, .*is no JSON: the function given to boundary\(\) gave .*$/);
});

test("a harness whose state is no JSON is told in a line that names the session and state()", async () => {
  await room.agent(defineOpaqueAgent({ name: "claw", mode: "exported", launch }));
  await room.seed(r1);
  void room.activate(r1);
  await until(async () => (await room.typesOf(r1)).includes("harness.launched"));
  expect(await refusalOf()).toMatch(/^what r1, attempt 0, .*is no JSON: state\(\) of its harness gave .*$/);
});
