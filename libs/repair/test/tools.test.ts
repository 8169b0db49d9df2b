import {
  applyEdit,
  isToolFailure,
  isToolName,
  toolArguments,
  toolDefinitions,
  toolFailure,
  toolNames,
} from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const text = "one\ntwo\r\nthree";

describe("an edit", () => {
  test("replaces the line that it names, and says so", () => {
    expect(applyEdit(text, { line: 1, old: "one", new: "1" })).toEqual({
      text: "1\ntwo\r\nthree",
      answer: "edited line 1\n",
    });
    expect(applyEdit(text, { line: 3, old: "three", new: "" }).text).toBe("one\ntwo\r\n");
  });

  test("keeps what is not a line feed, also before one", () => {
    expect(applyEdit(text, { line: 2, old: "two\r", new: "2\r" }).text).toBe("one\n2\r\nthree");
  });

  test.each([
    ["the line is another", { line: 2, old: "two", new: "2" }, 'error: line 2 reads "two\\r"'],
    ["there is no such line", { line: 4, old: "", new: "4" }, "error: line 4 is past the end, at 3"],
    ["it writes more than one", { line: 1, old: "one", new: "1\n2" }, "error: `new` has more than one line"],
  ])("changes nothing where %s", (_, edit, answer) => {
    expect(applyEdit(text, edit)).toEqual({ text, answer });
    expect(isToolFailure(answer)).toBe(true);
  });

  test("is undone by its reverse, and refused a second time", () => {
    const line = fc.string().filter((written) => !written.includes("\n"));
    const edited = fc.tuple(fc.array(line, { minLength: 1 }), fc.nat(), line);
    fc.assert(
      fc.property(edited, ([lines, at, written]) => {
        const index = at % lines.length;
        const before = lines.join("\n");
        const old = lines[index] ?? "";
        const after = applyEdit(before, { line: index + 1, old, new: written });
        expect(isToolFailure(after.answer)).toBe(false);
        expect(applyEdit(after.text, { line: index + 1, old: written, new: old }).text).toBe(before);
        const again = applyEdit(after.text, { line: index + 1, old, new: written });
        expect(isToolFailure(again.answer)).toBe(old !== written);
        expect(again.text).toBe(after.text);
      }),
    );
  });
});

describe("the tools", () => {
  test("are four, each known by its name", () => {
    expect(toolNames).toEqual(["list_files", "read_file", "edit_file", "run_tests"]);
    expect(toolNames.every(isToolName)).toBe(true);
    expect(isToolName("bash")).toBe(false);
  });

  test("take no arguments but their own", () => {
    expect(toolArguments.list_files.safeParse({ path: "." }).success).toBe(false);
    expect(toolArguments.read_file.safeParse({}).success).toBe(false);
    expect(toolArguments.read_file.safeParse({ path: "" }).success).toBe(false);
    expect(toolArguments.read_file.safeParse({ path: "x".repeat(4097) }).success).toBe(false);
    expect(toolArguments.edit_file.safeParse({ path: "a", line: 0, old: "", new: "" }).success).toBe(false);
    expect(toolArguments.edit_file.safeParse({ path: "a", line: 1, old: "", new: "" }).success).toBe(true);
    expect(toolArguments.run_tests.safeParse({}).success).toBe(true);
  });

  test("are offered as functions with a description and a schema each", () => {
    expect(toolDefinitions).toMatchInlineSnapshot(`
      [
        {
          "function": {
            "description": "Lists the files of the package, one path per line.",
            "name": "list_files",
            "parameters": {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "additionalProperties": false,
              "properties": {},
              "type": "object",
            },
          },
          "type": "function",
        },
        {
          "function": {
            "description": "Returns the text of one file.",
            "name": "read_file",
            "parameters": {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "additionalProperties": false,
              "properties": {
                "path": {
                  "maxLength": 4096,
                  "minLength": 1,
                  "type": "string",
                },
              },
              "required": [
                "path",
              ],
              "type": "object",
            },
          },
          "type": "function",
        },
        {
          "function": {
            "description": "Replaces one line of one file. Fails, and changes nothing, unless the line is now exactly \`old\`.",
            "name": "edit_file",
            "parameters": {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "additionalProperties": false,
              "properties": {
                "line": {
                  "description": "Number of the line, from 1.",
                  "exclusiveMinimum": 0,
                  "maximum": 9007199254740991,
                  "type": "integer",
                },
                "new": {
                  "description": "The whole line as it shall be, without its line end.",
                  "type": "string",
                },
                "old": {
                  "description": "The whole line as it is now, without its line end.",
                  "type": "string",
                },
                "path": {
                  "maxLength": 4096,
                  "minLength": 1,
                  "type": "string",
                },
              },
              "required": [
                "path",
                "line",
                "old",
                "new",
              ],
              "type": "object",
            },
          },
          "type": "function",
        },
        {
          "function": {
            "description": "Runs the package's own tests and reports which failed.",
            "name": "run_tests",
            "parameters": {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "additionalProperties": false,
              "properties": {},
              "type": "object",
            },
          },
          "type": "function",
        },
      ]
    `);
  });

  test("fail with an answer that is known as a failure", () => {
    expect(toolFailure("no such file")).toBe("error: no such file");
    expect(isToolFailure(toolFailure(""))).toBe(true);
    expect(isToolFailure("var error: 1")).toBe(false);
  });
});
