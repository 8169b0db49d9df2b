import { phaseMachine, phaseTable } from "@holdpoint/checkpoint";
import { Phase } from "@holdpoint/schemas";
import { array, assert, constantFrom, property } from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createActor } from "xstate";
import { withPhaseTables } from "../scripts/table.ts";

test("the phases lead where the protocol says, and resume leads back to idle from all of them", () => {
  const moves = [...phaseTable()].flatMap(([from, row]) =>
    [...row].filter(([, to]) => to !== from).map(([event, to]) => `${from}, ${event}: ${to}`),
  );
  expect(moves).toEqual([
    "idle, checkpoint.opened: preparing",
    "preparing, checkpoint.prepared: prepared",
    "preparing, restore.installed: restored",
    "preparing, checkpoint.resumed: idle",
    "prepared, checkpoint.captured: captured",
    "prepared, checkpoint.resumed: idle",
    "captured, checkpoint.committed: committed",
    "captured, checkpoint.resumed: idle",
    "committed, checkpoint.resumed: idle",
    "restored, checkpoint.resumed: idle",
  ]);
});

test("the documentation shows the same tables", () => {
  const document = readFileSync(join(import.meta.dirname, "../../../docs/checkpoints.md"), "utf8");
  expect(withPhaseTables(document), "run `npm run docs`").toBe(document);
});

test("the table knows every phase and every event", () => {
  expect([...phaseTable().keys()]).toEqual(Phase.options);
  for (const row of phaseTable().values()) expect(row.size).toBe(9);
});

test("the table and the running machine agree after any events", () => {
  const events = [...(phaseTable().get("idle")?.keys() ?? [])];
  assert(
    property(array(constantFrom(...events), { maxLength: 30 }), (types) => {
      const actor = createActor(phaseMachine).start();
      let phase: Phase = "idle";
      for (const type of types) {
        actor.send({ type });
        phase = phaseTable().get(phase)?.get(type) ?? "idle";
      }
      expect(actor.getSnapshot().value).toBe(phase);
    }),
  );
});
