/** A wrong definition of a model server is refused where it is written, by name. */
import { defineModel, modelSpec } from "@holdpoint/participant";
import { describe, expect, test } from "vitest";
import { onlyPolicy, Room } from "./model-room.ts";

const good = { name: "tiny", policies: onlyPolicy(() => ({ message: { role: "assistant" } })) };

describe("[S13] a definition is refused at once, with its name and what is wrong with it:", () => {
  test.each([
    ["an unknown key", { ...good, policy: {} }, /policy/],
    ["no policies", { name: "tiny" }, /expected \{ names, find, stop\? \}[^]*policies/],
    ["policies without find", { ...good, policies: { names: () => [] } }, /expected \{ names, find, stop\? \}/],
    ["a find that is no function", { ...good, policies: { names: () => [], find: 1 } }, /each a function/],
    ["an unknown mode", { ...good, mode: "exporting" }, /"exported", "restart_only"[^]*mode/],
    ["a mode that no model has", { ...good, mode: "stateless" }, /never stateless[^]*mode/],
  ])("%s", (_, definition, why) => {
    const define = () => defineModel(definition as unknown as typeof good);
    expect(define).toThrow(expect.objectContaining({ code: "invalid_request", message: expect.stringMatching(why) }));
    expect(define).toThrow(/defineModel "tiny"/);
  });
});

test("policies that are made at the start are looked at there, and refused by name", async () => {
  const made = defineModel({ ...good, policies: async () => ({ names: () => [] }) as never });
  const { log, blobs } = new Room();
  await expect(made.policies({ run: "room", log, blobs })).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(/defineModel "tiny"[^]*expected \{ names, find, stop\? \}/),
  });
});

test("the mode is restart_only where nothing is said", async () => {
  expect(await modelSpec(defineModel(good))).toMatchObject({ role: "model", mode: "restart_only" });
  expect(await modelSpec(defineModel({ ...good, mode: "exported" }))).toMatchObject({ mode: "exported" });
});
