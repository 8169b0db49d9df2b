/** The conformance kit on our own participants, and on those of the tutorial. */
import { packages, taskOf } from "@holdpoint/repair";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { broken, folder } from "./conformance.ts";

const [spec] = packages;
if (spec === undefined) throw new Error("the repair workload has no packages");
const seed = { task: taskOf({ seed: 1, spec }), seed: 1 };
const node = process.execPath;

test("our environment holds the contract", async () => {
  expect(
    await broken({ role: "environment", command: [node, "apps/environment/src/main.ts"], workload: { seed } }),
  ).toEqual([]);
});

test("our agent holds the contract", async () => {
  const workload = { seed, tool: { name: "list_files", arguments: {} } };
  expect(await broken({ role: "agent", command: [node, "apps/agent/src/main.ts"], workload })).toEqual([]);
});

test("our resources server holds the contract", async () => {
  const env = { HOLDPOINT_STATE_DIR: join(folder, "resources") };
  const workload = { seed, tool: { name: "list_files", arguments: {} } };
  expect(await broken({ role: "resources", command: [node, "apps/resources/src/main.ts"], env, workload })).toEqual([]);
});

/** Of a conversation as long as the turn says. */
function request(turn: number): object {
  const messages = Array.from({ length: turn + 1 }, (_, index) => ({ role: "user", content: `turn ${index}` }));
  return { model: "scripted", messages };
}

test("our model server holds the contract", async () => {
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify(["list_files", "run_tests"].map((name) => [{ name, arguments: {} }])));
  const command: [string, string] = [node, "apps/model/src/main.ts"];
  const env = { HOLDPOINT_SCRIPT_FILE: script };
  expect(await broken({ role: "model", command, env, workload: { request } })).toEqual([]);
});

test.each([
  ["environment", { seed: { target: 3 } }],
  ["agent", { seed: { target: 3 }, tool: { name: "add", arguments: { by: 1 } } }],
  ["resources", { seed: { target: 3 }, otherSeed: { target: 4 }, tool: { name: "add", arguments: { by: 1 } } }],
  ["model", { request: (turn: number) => ({ ...request(turn), model: "counting" }) }],
] as const)("the tutorial's %s holds the contract", async (role, workload) => {
  expect(await broken({ role, command: [node, `docs/examples/counter-${role}.ts`], workload })).toEqual([]);
});

test("a resources server that says nothing of its mode holds what the contract asks of one", async () => {
  const workload = { seed: {}, tool: { name: "look", arguments: {} } };
  expect(await broken({ role: "resources", command: [node, "test/restart-only.ts"], workload })).toEqual([]);
});
