import { expect, test } from "vitest";
import { htmlOf } from "../src/report/html.ts";
import { jsonOf } from "../src/report/json.ts";
import { summarize } from "../src/report/summary.ts";
import { textOf } from "../src/report/text.ts";
import { chaos, continued, pair } from "./records.ts";

const equal = summarize(pair, 7);
const different = summarize({ ...pair, chaos: { ...chaos, rollouts: [{ ...continued, treeDigest: "<other>" }] } }, 7);

test("the numbers of the chaos are those of its record", () => {
  expect(equal).toMatchObject({ equal: true, seed: 7 });
  expect(equal.numbers).toMatchObject({
    kills: 8,
    hits: 8,
    checkpoints: 1,
    restores: 1,
    continued: 1,
    restarted: 0,
    repeatedCalls: 1,
    repeatedTools: 2,
    hold: { medianMs: 150, maxMs: 150 },
    lag: { medianMs: 100, maxMs: 100 },
  });
});

test("a rollout that differs is named in its row, with the checks in which it does", () => {
  expect(equal.rows[0]?.differs).toEqual([]);
  expect(different.rows[0]?.differs).toEqual(["tree"]);
});

test("a rollout whose name another one begins with is not taken for it", () => {
  const [first] = chaos.rollouts;
  if (first === undefined) throw new Error("no rollout");
  const ten = { ...first, rollout: "g0-r01", reward: 9 };
  const pinned = new Map([
    ["g0-r0", 0],
    ["g0-r01", 0],
  ]);
  const both = { ...pair, pinned, chaos: { ...chaos, rollouts: [first, ten] } };

  const rows = summarize(
    { ...both, calm: { ...pair.calm, rollouts: [...pair.calm.rollouts, { ...ten, reward: 1 }] } },
    7,
  ).rows;

  expect(rows.map(({ differs }) => differs)).toEqual([[], ["reward"]]);
});

test("the text ends with the verdict, and names what does not hold", () => {
  expect(textOf(equal)).toMatch(/EQUAL: the run under chaos ended as the one without\.\n$/);
  expect(textOf(equal)).not.toContain("NO ");
  expect(textOf(different)).toContain('g0-r0: tree hash differs: "tree" and "<other>"');
  expect(textOf(different)).toMatch(/NOT EQUAL: see above\.\n$/);
});

test("the JSON holds the verdict, the checks, the rows and both runs", () => {
  const parsed: unknown = JSON.parse(jsonOf(different));

  expect(parsed).toMatchObject({
    equal: false,
    seed: 7,
    chaos: "some",
    rollouts: [{ rollout: "g0-r0", differs: ["tree"] }],
    runs: [{ name: "calm" }, { name: "chaos", executions: { repeated: { "g0-r0": 2 } } }],
  });
});

test("the page needs nothing else, and what it quotes cannot break it", () => {
  const page = htmlOf(different);

  expect(page).not.toMatch(/(?:src|href)=|@import|url\(/);
  expect(page).toContain("&lt;other&gt;");
  expect(page).not.toContain("<other>");
});

test("the timeline shows every kill, the checkpoint, the restore and each attempt", () => {
  const page = htmlOf(equal);

  for (const kill of chaos.kills) expect(page).toContain(`kill -9 of ${kill.planned.victim} `);
  expect(page).toContain("c1: holds 1 episodes");
  expect(page).toContain("r1: restored c1, continued 1 rollouts");
  expect(page).toContain("g0-r0, attempt 0: from its input, abandoned");
  expect(page).toContain("g0-r0, attempt 1: goes on from c1, finished");
});
