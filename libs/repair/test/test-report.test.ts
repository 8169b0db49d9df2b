import { allPassed, formatReport, parseTestReport, readReport, rewardOf, type TestReport } from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const failing = `TAP version 13
# booleans
ok 1 should be strictly equal
not ok 2 should be deeply equivalent
  ---
    operator: deepEqual
    expected: [ 'a', 'b' ]
    actual:   [ 'a' ]
    at: Test.<anonymous> (/tmp/box-17/test/bool.js:151:4)
    stack: |-
      Error: should be deeply equivalent
          at Test.assert [as _assert] (/task/node_modules/tape/index.js:548:48)
          at module.exports (/tmp/box-17/index.js:44:9)
          at Test.<anonymous> (/tmp/box-17/test/bool.js:151:4)
  ...
# long values
not ok 3 should be strictly equal
  ---
    operator: equal
    expected: |-
      'first line'
    actual: |-
      'other line'
    at: Test.<anonymous> (C:\\box\\test\\long.js:9:2)
  ...
not ok 4 plan != count
  ---
    expected: 2
    actual:   1
    at: onExit (/task/node_modules/tape/index.js:197:9)
  ...
ok 5 (unnamed assert)

1..5
# tests 5
# pass  2
# fail  3
`;

const crashed = `TAP version 13
# all booleans
ok 1 should be deeply equivalent
/tmp/box-17/index.js:212
\t\t\tvar next = args[i + 1];
\t\t\t           ^

TypeError: Cannot read properties of undefined (reading 'split')
    at Array.forEach (<anonymous>)
    at setArg (/tmp/box-17/index.js:125:15)
    at module.exports (/tmp/box-17/index.js:212:4)
    at Test.run (/task/node_modules/tape/lib/index.js:151:28)

Node.js v24.21.0
`;

const empty: TestReport = { planned: null, passed: 0, failed: 0, failures: [], crash: null, sourceLines: [] };

describe("a report", () => {
  test("counts what passed and what failed, and names each failure with its test, place and values", () => {
    expect(parseTestReport(failing)).toEqual({
      planned: 5,
      passed: 2,
      failed: 3,
      failures: [
        {
          test: "booleans",
          assertion: "should be deeply equivalent",
          at: "bool.js:151",
          expected: "[ 'a', 'b' ]",
          actual: "[ 'a' ]",
        },
        {
          test: "long values",
          assertion: "should be strictly equal",
          at: "long.js:9",
          expected: "'first line'",
          actual: "'other line'",
        },
        { test: "long values", assertion: "plan != count", at: "", expected: "2", actual: "1" },
      ],
      crash: null,
      sourceLines: [44],
    });
  });

  test("of a run that crashed has no plan, the error, and the lines of the package that it passed through", () => {
    expect(parseTestReport(crashed)).toEqual({
      ...empty,
      passed: 1,
      crash: "TypeError: Cannot read properties of undefined (reading 'split')",
      sourceLines: [125, 212],
    });
  });

  test("does not say where the package lay", () => {
    expect(parseTestReport("Error: Cannot find module '/tmp/box-17/lib/a.js'\n").crash).toBe(
      "Error: Cannot find module 'a.js'",
    );
    expect(parseTestReport("Error: ratio 1/2/3").crash).toBe("Error: ratio 1/2/3");
    for (const output of [failing, crashed]) {
      expect(parseTestReport(output.replaceAll("box-17", "box-4711"))).toEqual(parseTestReport(output));
      expect(JSON.stringify(parseTestReport(output))).not.toContain("box");
    }
  });

  test("reads carriage returns, results without a name, and failures without a block", () => {
    const report = parseTestReport("# t\r\nok 1\r\nnot ok 2\r\nnot ok 3 c\r\n1..3\r\n");
    const failure = { test: "t", at: "", expected: "", actual: "" };
    expect(report).toMatchObject({ planned: 3, passed: 1, failed: 2 });
    expect(report.failures).toEqual([
      { ...failure, assertion: "" },
      { ...failure, assertion: "c" },
    ]);
  });

  test("takes a block to its end, and nothing of the next one", () => {
    const report = parseTestReport(
      "not ok 1 a\nnot ok 2 b\n  ---\n    expected: 1\n  ...\nnot ok 3 c\n  ---\n    actual: 2",
    );
    expect(report.failures.map(({ expected, actual }) => [expected, actual])).toEqual([
      ["", ""],
      ["1", ""],
      ["", "2"],
    ]);
  });

  test("has numbers of any length", () => {
    const output = `ok 9 a\nnot ok 12 b\n  ---\n    at: /x/test/c.js:345:67\n  ...\n1..153\n`;
    expect(parseTestReport(output)).toMatchObject({
      planned: 153,
      passed: 1,
      failures: [{ test: "", assertion: "b", at: "c.js:345" }],
    });
  });

  test("takes no detail from deeper in a block, nor from a place that is not one", () => {
    const block = "not ok 1 a\n  ---\n        expected: 1\n        actual: 2\n        at: /x/b.js:1:2\n  ...\n";
    expect(parseTestReport(block).failures).toEqual([{ test: "", assertion: "a", at: "", expected: "", actual: "" }]);
    expect(parseTestReport("not ok 1 a\n  ---\n    at: /x/b.js:1:2 or so\n  ...").failures[0]?.at).toBe("");
  });

  test("takes for results only what begins a line", () => {
    expect(parseTestReport(" ok 1\nxok 1\nok x\nprint not ok 1\n 1..3\n1..3x\nx1..3").failed).toBe(0);
    expect(parseTestReport(" ok 1\nxok 1\nok x\n 1..3\n1..3x\nx1..3")).toEqual(empty);
    expect(parseTestReport("# a\n#b\nx# c\nnot ok 1").failures[0]?.test).toBe("a");
  });

  test("keeps no text longer than 200 characters", () => {
    const long = "x".repeat(500);
    const block = `# ${long}\nnot ok 1 ${long}\n  ---\n    expected: ${long}\n    actual: ${long}\n  ...\n`;
    const [failure] = parseTestReport(block).failures;
    expect([failure?.test, failure?.assertion, failure?.expected, failure?.actual].map((text) => text?.length)).toEqual(
      [200, 200, 200, 200],
    );
    expect(parseTestReport(`Error: ${long}`).crash).toHaveLength(200);
  });

  test("counts a crash only where the run did not come to its end", () => {
    expect(parseTestReport("1..0\nError: late").crash).toBeNull();
    expect(parseTestReport("AssertionError [ERR_ASSERTION]: no").crash).toBe("AssertionError [ERR_ASSERTION]: no");
    expect(parseTestReport("thrown: Error: x\n  RangeError: y").crash).toBeNull();
    expect(parseTestReport("Errors: 3").crash).toBeNull();
  });

  test("names each line of the source once, ascending, and none of other packages", () => {
    const output = [
      "at f (/a/index.js:100:1)",
      "at /a/index.js:9:1",
      "at f (C:\\a\\index.js:9:1)",
      "at g (/a/node_modules/b/index.js:7:1)",
      "at h (/a/myindex.js:8:1)",
      "at i (/a/index.jsx:6:1)",
    ].join("\n");
    expect(parseTestReport(output).sourceLines).toEqual([9, 100]);
  });

  test("comes of any output whatever, without an error", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.constantFrom(...failing.split("\n"), ...crashed.split("\n")))),
        (lines) => {
          const report = parseTestReport(lines.join("\n"));
          expect(report.failures).toHaveLength(report.failed);
          expect(rewardOf(report, 5)).toBeLessThanOrEqual(1);
          expect(formatReport(report, 5)).toMatch(/\n$/);
        },
      ),
    );
  });
});

describe("the reward", () => {
  const whole = { ...empty, planned: 4, passed: 4 };

  test("is 1 where every expected test ran and passed, to the end of the run, and only then", () => {
    expect(rewardOf(whole, 4)).toBe(1);
    expect(allPassed(whole, 4)).toBe(true);
    const others: readonly TestReport[] = [
      { ...whole, planned: null },
      { ...whole, planned: 5 },
      { ...whole, passed: 3 },
      { ...whole, failed: 1 },
      { ...whole, planned: 3, passed: 3 },
    ];
    for (const report of others) {
      expect(allPassed(report, 4)).toBe(false);
      expect(rewardOf(report, 4)).toBeLessThanOrEqual(0.5);
    }
  });

  test("is half the share of tests that pass otherwise, whatever is printed", () => {
    expect(rewardOf(empty, 4)).toBe(0);
    expect(rewardOf({ ...whole, passed: 1, failed: 3 }, 4)).toBe(0.125);
    expect(rewardOf({ ...whole, passed: 400, planned: 400 }, 4)).toBe(0.5);
  });
});

describe("the printed report", () => {
  const failure = { test: "t", assertion: "a", at: "b.js:1", expected: "1", actual: "2" };

  test("says that all is well in one line", () => {
    expect(formatReport({ ...empty, planned: 2, passed: 2 }, 2)).toBe("All 2 tests passed.\n");
  });

  test("says what failed, why the run ended, and where the source was passed through", () => {
    const bare = { test: "", assertion: "z", at: "", expected: "", actual: "" };
    const report = {
      ...empty,
      passed: 1,
      failed: 2,
      failures: [failure, bare],
      crash: "Error: x",
      sourceLines: [3, 14],
    };
    expect(formatReport(report, 9).split("\n")).toEqual([
      "1 of 9 tests passed, 2 failed.",
      "not ok: t: a",
      "  at: b.js:1",
      "  expected: 1",
      "  actual: 2",
      "not ok: z",
      "The run did not come to its end: Error: x",
      "Stack traces name index.js at 3, 14.",
      "",
    ]);
  });

  test("says that there is no reason where there is none", () => {
    expect(formatReport(empty, 9)).toBe(
      "0 of 9 tests passed, 0 failed.\nThe run did not come to its end: no reason given\n",
    );
  });

  test("names ten failures at most, and counts the others", () => {
    const failures = Array.from({ length: 12 }, (_, index) => ({ ...failure, assertion: `a${index}` }));
    const many = formatReport({ ...empty, planned: 12, failed: 12, failures }, 12);
    expect(many.match(/^not ok: /gm)).toHaveLength(10);
    expect(many).toContain("\nand 2 more failures\n");
    const ten = formatReport({ ...empty, planned: 10, failed: 10, failures: failures.slice(0, 10) }, 10);
    expect(ten).not.toContain("more failures");
    expect(ten).not.toContain("did not come to its end");
  });

  test("is read again by a policy: whether all passed, the words of what failed, the lines", () => {
    const failures = [
      { ...failure, test: "Dotted ALIAS", assertion: "has it" },
      { ...failure, test: "", assertion: "kv_short" },
    ];
    const report = { ...empty, planned: 9, failed: 2, failures, sourceLines: [3, 14] };
    expect(readReport(formatReport(report, 9))).toEqual({
      passed: false,
      words: new Set(["dotted", "alias", "short"]),
      sourceLines: new Set([3, 14]),
    });
    const nothing = { words: new Set(), sourceLines: new Set() };
    expect(readReport(formatReport({ ...empty, planned: 2, passed: 2 }, 2))).toEqual({ passed: true, ...nothing });
    expect(readReport(formatReport(empty, 2))).toEqual({ passed: false, ...nothing });
    expect(readReport("not ok: All 2 tests passed.").passed).toBe(false);
    expect(readReport("All 2 tests passed. Or not.").passed).toBe(false);
    expect(readReport("All 153 tests passed.").passed).toBe(true);
    expect(readReport("it is not ok: never said").words).toEqual(new Set());
    expect(readReport("x Stack traces name index.js at 3.").sourceLines).toEqual(new Set());
    expect(readReport("Stack traces name index.js at 3. Or so.").sourceLines).toEqual(new Set());
  });
});
