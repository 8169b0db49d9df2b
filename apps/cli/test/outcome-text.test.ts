import { Outcome } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { outcomeText } from "../src/commands/outcome-text.ts";

const digest = "a".repeat(64);

test("a prepare that is not ready says who blocks it, why, and since when", () => {
  const outcome = Outcome.parse({
    ok: false,
    command: 7,
    operation: "prepare",
    problem: { code: "deadline_exceeded", message: "not ready within 5000 ms" },
    result: {
      phase: "preparing",
      checkpointId: "c1",
      ready: false,
      blockers: [{ role: "agent", instance: "main", rollout: "g0-r1", attempt: 2, reason: "running", sinceMs: 0 }],
      blockerCount: 3,
      restarts: [{ rollout: "g0-r2", attempt: 0 }],
    },
  });

  expect(outcomeText(outcome)).toBe(`prepare: deadline_exceeded: not ready within 5000 ms (command 7)
  phase: preparing, c1 is open
  ready: no
  blocked by g0-r1/2 at agent main: running, since 1970-01-01T00:00:00.000Z
  and 2 more blockers
  would start over: g0-r2/0
`);
});

test("a restore says of each participant what it found, what goes on, and what was left out", () => {
  const entry = { role: "agent", instance: "main", worker: "0", expected: digest, found: digest };
  const outcome = Outcome.parse({
    ok: true,
    command: 9,
    operation: "restore",
    result: {
      phase: "restored",
      checkpointId: "r1",
      receipt: [
        {
          ...entry,
          continued: [{ rollout: "g0-r1", attempt: 1 }],
          restarted: [],
          leftOut: [{ rollout: "g0-r3", attempt: 0, why: "not in the scope" }],
        },
      ],
    },
  });

  expect(outcomeText(outcome)).toBe(`restore: done (command 9)
  phase: restored, r1 is open
  agent main: found what was expected
    continued: g0-r1/1
    left out: g0-r3/0: not in the scope
`);
});

test("long lists are cut short, and say so", () => {
  const continued = Array.from({ length: 25 }, (_, rollout) => ({ rollout: `g${rollout}`, attempt: 0 }));
  const result = { phase: "prepared", checkpointId: "c1", continued };
  const outcome = Outcome.parse({ ok: true, command: 1, operation: "prepare", result });

  expect(outcomeText(outcome)).toMatch(/can be continued: g0\/0, .*g19\/0 and 5 more\n/);
});
