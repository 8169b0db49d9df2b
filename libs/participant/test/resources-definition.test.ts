import { HoldpointError } from "@holdpoint/errors";
import { defineResources } from "@holdpoint/participant";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { counterWith, Shelf } from "./resources-counter.ts";

const add = {
  description: "adds",
  input: z.object({ by: z.int() }),
  run: async () => ({ result: "" }),
};

const sound = {
  name: "counter",
  mode: "exported",
  seed: z.object({ target: z.int() }),
  state: { open: () => 0, evolve: () => 0 },
  tools: { add },
  verify: { run: async () => ({ reward: 0 }) },
};

/** As somebody without a compiler would write it. */
function define(changes: object): unknown {
  return Reflect.apply(defineResources, undefined, [{ ...sound, ...changes }]);
}

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (HoldpointError.is(error, "invalid_request")) return error.message;
    throw error;
  }
  return "nothing was refused";
}

const { open, install, free } = new Shelf();
const withoutCapture = { open, install, free };

describe("[S13] a definition is refused at once, by its name and the hook's, where", () => {
  test.each([
    ["verify is not there", { verify: undefined }, "verify"],
    ["verify.run is no function", { verify: { run: 1 } }, "verify.run"],
    ["verify has a mode that there is not", { verify: { ...sound.verify, mode: "maybe" } }, "verify.mode"],
    ["a key is unknown", { captures: 1 }, "captures"],
    ["the seed is no schema", { seed: {} }, "seed"],
    ["the state cannot evolve", { state: { open: () => 0 } }, "state.evolve"],
    ["a tool has no description", { tools: { add: { ...add, description: "" } } }, "tools.add.description"],
    ["a tool's run is no function", { tools: { add: { ...add, run: "add" } } }, "tools.add.run"],
    [
      "a tool's run takes two things",
      { tools: { add: { ...add, run: async (_state: number, _input: object) => ({ result: "" }) } } },
      "tools.add.run",
    ],
    [
      "a tool has a name with a dot",
      { tools: { "a.b": add } },
      'expected 1 to 128 of A-Z a-z 0-9 _ - as the name of a tool, found "a.b"',
    ],
    [
      "a hook of external state is misspelt",
      { external: { ...withoutCapture, capture: free, relase: free } },
      "external.relase",
    ],
    ["a tool has an unknown key", { tools: { add: { ...add, repeat: true } } }, "repeat"],
    ["a tool's input is no schema", { tools: { add: { ...add, input: { by: 1 } } } }, "tools.add.input"],
    ["a tool's input is no object", { tools: { add: { ...add, input: z.string() } } }, "tools.add.input"],
    ["a tool's input is nothing that JSON says", { tools: { add: { ...add, input: z.date() } } }, "tools.add.input"],
    ["a tool has no legal name", { tools: { "add it": add } }, "tools"],
    ["grants never expire", { grants: {} }, "grants.ttlMs"],
    ["grants expire before they begin", { grants: { ttlMs: 0 } }, "grants.ttlMs"],
    ["the mode is none", { mode: "sometimes" }, "mode"],
    ["external state cannot be captured", { external: withoutCapture }, "external.capture"],
    ["external state is captured by no function", { external: { ...withoutCapture, capture: {} } }, "external.capture"],
    ["a sandbox is lent that nothing sets up", { lends: true }, "lends"],
    [
      "a mode without exports has hooks that it never calls",
      { mode: "restart_only", external: new Shelf() },
      "external",
    ],
    ["the default mode has hooks that it never calls", { mode: undefined, external: new Shelf() }, "external"],
    ["a stateless mode has state", { mode: "stateless" }, "mode"],
  ])("%s", (_, changes, hook) => {
    const message = messageOf(() => define(changes));
    expect(message).toContain('"counter"');
    expect(message).toContain(hook);
  });

  test("its mode, once asked for, is one that its hooks have no use for", async () => {
    const resources = counterWith({ mode: () => "stateless" });
    await expect(resources.mode()).rejects.toThrow(
      /the mode of counter is "stateless"; expected exported or restart_only/,
    );
  });
});

test("the mode is restart_only where nothing is said, and may be found out when the process starts", async () => {
  const { mode: _mode, ...silent } = sound;
  expect(await defineResources(silent).mode()).toBe("restart_only");
  expect(await counterWith({ mode: () => Promise.resolve("exported") }).mode()).toBe("exported");
});

test("tools are told as JSON schema of what they take", () => {
  expect(counterWith().tools.get("add")?.inputSchema).toMatchObject({
    type: "object",
    properties: { by: { type: "integer" } },
    required: ["by"],
  });
});

test("[S10] a lender says in its terms that it lends, and who gives grants that it does", () => {
  expect(counterWith().terms).toEqual({ verify: "wait", rebinds: false, sandboxLent: false, grantsBound: false });
  const lender = counterWith({
    external: new Shelf(),
    lends: true,
    grants: { ttlMs: 1 },
    verify: { ...sound.verify, mode: "replay" },
  });
  expect(lender.terms).toEqual({ verify: "replay", rebinds: false, sandboxLent: true, grantsBound: true });
});
