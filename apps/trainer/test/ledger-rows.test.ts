import { MemoryLog, type Path } from "@holdpoint/eventsourcing";
import { sha256 } from "@holdpoint/participant";
import type { ModelEvent } from "@holdpoint/schemas";
import { expect, test } from "vitest";
import { isTorn, readRows, type Row } from "../src/ledger-rows.ts";

const subject = "hp.t.log.model.main.0";
const whole: Path = [{ attempt: 0, upTo: Number.POSITIVE_INFINITY }];

function calls(attempt: number, turn: number, staging: string | null): readonly ModelEvent[] {
  const call = { rollout: "a", attempt, turn };
  const request = sha256(`request ${turn}`);
  const text = `${attempt} says ${turn}`;
  const response = { digest: sha256(text), bytes: text.length, text };
  const rest = { policyVersion: 0, promptTokens: 1, completionTokens: 1 };
  return [{ type: "call.finished", data: { ...call, request, response, staging, ...rest } }];
}

function delivered(attempt: number, turn: number): ModelEvent {
  return { type: "call.delivered", data: { rollout: "a", attempt, turn } };
}

function withheld(attempt: number, turn: number): ModelEvent {
  return { type: "call.withheld", data: { rollout: "a", attempt, turn } };
}

/** The rows of rollout `a` along `path`, where the model server said each of `messages`, from sequence 1 on. */
async function rowsOf(path: Path, ...messages: readonly (readonly ModelEvent[])[]): Promise<readonly Row[]> {
  const log = new MemoryLog("HP_t");
  for (const [sequence, events] of messages.entries()) {
    const body = JSON.stringify({ schema: 1, incarnation: "m", events });
    await log.append({ subject, body, messageId: `m-${sequence}`, expected: { subject, sequence } });
  }
  const attempt = path.at(-1)?.attempt ?? 0;
  const range = { from: 1, upTo: messages.length };
  const [rows = []] = await readRows({ log, run: "t", hash: sha256 }, [{ rollout: "a", attempt, path }], range);
  return rows;
}

const x = "a".repeat(64);
const y = "b".repeat(64);
const z = "c".repeat(64);

test("[L5] only a call that was delivered is a row", async () => {
  expect(await rowsOf(whole, [...calls(0, 0, x), delivered(0, 0)], calls(0, 1, y))).toEqual([{ turn: 0, staging: x }]);
});

test("a call that was withheld again is a row once it is delivered again", async () => {
  const before = [...calls(0, 0, x), delivered(0, 0), withheld(0, 0)];
  expect(await rowsOf(whole, before)).toEqual([]);
  expect(await rowsOf(whole, before, [delivered(0, 0)])).toEqual([{ turn: 0, staging: x }]);
});

test("[L3] the first response to a turn stands", async () => {
  const rows = await rowsOf(whole, [...calls(0, 0, x), ...calls(0, 0, y), delivered(0, 0)]);
  expect(rows).toEqual([{ turn: 0, staging: x }]);
});

const restored: Path = [
  { attempt: 0, upTo: 2 },
  { attempt: 1, upTo: Number.POSITIVE_INFINITY },
];

test("[L6] a continuation has the rows from before the cut, and its own; what was said beside the path is none", async () => {
  const rows = await rowsOf(
    restored,
    [...calls(0, 0, x), delivered(0, 0)],
    [...calls(0, 1, y), delivered(0, 1)],
    [...calls(0, 2, x), delivered(0, 2)],
    [...calls(1, 2, z), delivered(1, 2)],
  );
  expect(rows).toEqual([
    { turn: 0, staging: x },
    { turn: 1, staging: y },
    { turn: 2, staging: z },
  ]);
});

test("a call that was not delivered by the cut is asked for again: the continuation's answer counts", async () => {
  const rows = await rowsOf(
    restored,
    [...calls(0, 0, x), delivered(0, 0)],
    calls(0, 1, y),
    [delivered(0, 1)],
    [...calls(1, 1, z), delivered(1, 1)],
  );
  expect(rows).toEqual([
    { turn: 0, staging: x },
    { turn: 1, staging: z },
  ]);
});

test("[A9] rows are torn where there is none, or a turn is missing", () => {
  expect(isTorn([])).toBe(true);
  expect(isTorn([{ turn: 1, staging: null }])).toBe(true);
  expect(
    isTorn([
      { turn: 0, staging: null },
      { turn: 2, staging: x },
    ]),
  ).toBe(true);
  expect(
    isTorn([
      { turn: 0, staging: null },
      { turn: 1, staging: x },
    ]),
  ).toBe(false);
});
