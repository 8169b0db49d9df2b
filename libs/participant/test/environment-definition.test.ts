/** A wrong definition of an environment is refused where it is written, by name. */
import { defineEnvironment, environmentSpec } from "@holdpoint/participant";
import { describe, expect, test } from "vitest";
import * as z from "zod";

const good = { name: "sums", task: z.json() };

describe("[S13] a definition is refused at once, with its name and what is wrong with it:", () => {
  test.each([
    ["an unknown key", { ...good, verify: () => {} }, /verify/],
    ["a run that is no function", { ...good, run: "seed" }, /expected a function[^]*run/],
    ["a run of another shape", { ...good, run: (_task: unknown, _episode: unknown) => {} }, /the episode alone[^]*run/],
    ["a task that is no schema", { ...good, task: { type: "object" } }, /expected a zod schema[^]*task/],
    ["no task", { name: "sums" }, /expected a zod schema[^]*task/],
    ["an unknown mode", { ...good, mode: "exporting" }, /"exported", "restart_only"[^]*mode/],
    ["a mode that no environment has", { ...good, mode: "stateless" }, /never stateless[^]*mode/],
  ])("%s", (_, definition, why) => {
    const define = () => defineEnvironment(definition as unknown as typeof good);
    expect(define).toThrow(expect.objectContaining({ code: "invalid_request", message: expect.stringMatching(why) }));
    expect(define).toThrow(/defineEnvironment "sums"/);
  });

  test("no name", () => {
    expect(() => defineEnvironment({ ...good, name: "" })).toThrow(/defineEnvironment[^]*name/);
  });
});

describe("the mode", () => {
  test("is restart_only where nothing is said", async () => {
    expect(await environmentSpec(defineEnvironment(good))).toMatchObject({ role: "environment", mode: "restart_only" });
  });

  test("can be found by each instance when it starts", async () => {
    expect(await environmentSpec(defineEnvironment({ ...good, mode: async () => "exported" as const }))).toMatchObject({
      mode: "exported",
    });
  });

  test("that is found is refused by name where no environment has it", async () => {
    const definition = defineEnvironment({ ...good, mode: () => "stateless" as unknown as "exported" });
    await expect(environmentSpec(definition)).rejects.toMatchObject({
      code: "invalid_request",
      message: 'the mode of environment sums is "stateless"; expected exported or restart_only',
    });
  });
});
