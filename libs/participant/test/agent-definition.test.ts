/** What an agent may be defined as, and what is refused at once. */
import { HoldpointError } from "@holdpoint/errors";
import { agentSpec, defineAgent, defineOpaqueAgent } from "@holdpoint/participant";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const seed = z.object({});
const activate = async () => "done";
const good = { name: "writer", mode: "exported", seed, activate } as const;

/** As somebody gives it who has no types. */
function define(given: object): unknown {
  return Reflect.apply(defineAgent, undefined, [given]);
}

describe("a definition", () => {
  test("is taken with all that it may hold", async () => {
    const hooks = { rebind: async () => {}, capturable: () => true as const };
    const definition = defineAgent({ ...good, slots: 2, ...hooks });
    expect(definition).toMatchObject({ name: "writer", rebinds: true, slots: 2 });
    expect((await agentSpec(definition)).mode).toBe("exported");
  });

  test("that says no mode is restart_only", async () => {
    const { mode: _, ...rest } = good;
    expect((await agentSpec(defineAgent(rest))).mode).toBe("restart_only");
  });

  test("may find its mode when it starts, and no other than there are", async () => {
    const found = defineAgent({ ...good, mode: async () => "stateless" as const });
    expect((await agentSpec(found)).mode).toBe("stateless");
    const wrong = define({ ...good, mode: () => "frozen" });
    const spec: unknown = Reflect.apply(agentSpec, undefined, [wrong]);
    await expect(spec).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(/writer.*"frozen".*exported/),
    });
  });

  test.each([
    [
      "[S13] a hook of the wrong shape",
      { activate: (_one: object, _other: object) => "x" },
      /writer[^]*of the session alone/,
    ],
    ["[S13] a generator function", { activate: async function* () {} }, /writer[^]*a generator function[^]*activate/],
    ["[S13] a class", { activate: HoldpointError }, /writer[^]*a class[^]*activate/],
    ["[S13] no hook at all", { activate: "run" }, /writer[^]*activate/],
    ["[S14] a re-bind that is declared and has no hook", { rebind: true }, /writer[^]*rebind/],
    ["[S14] a re-bind that is declared as nothing", { rebind: undefined }, /writer[^]*rebind/],
    ["a hook that its mode never calls", { mode: "restart_only", rebind: async () => {} }, /never calls it[^]*rebind/],
    [
      "a hook that the default mode never calls",
      { mode: undefined, capturable: () => true },
      /never calls it[^]*capturable/,
    ],
    ["a mode that there is not", { mode: "frozen" }, /writer[^]*"restart_only"/],
    ["a part that there is not", { rebinds: true }, /writer[^]*rebinds/],
    ["no slot", { slots: 0 }, /writer[^]*slots/],
    ["a seed without a schema", { seed: {} }, /writer[^]*zod schema/],
  ])("%s is refused, by name", (_, part, words) => {
    expect(() => define({ ...good, ...part })).toThrow(
      expect.objectContaining({ code: "invalid_request", message: expect.stringMatching(words) }),
    );
  });

  test("[S13] of an opaque agent is refused as well where a hook is none", () => {
    const given = {
      name: "claw",
      mode: "exported",
      launch: 1,
      find: (_: string, _s: object, _more: object) => undefined,
    };
    const defined = (): unknown => Reflect.apply(defineOpaqueAgent, undefined, [given]);
    expect(defined).toThrow(
      expect.objectContaining({ code: "invalid_request", message: expect.stringMatching(/claw[^]*launch[^]*find/) }),
    );
  });
});
