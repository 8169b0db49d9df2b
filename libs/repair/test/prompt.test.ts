import { callTools, ChatMessage, packages, promptOf, readPrompt, taskOf, textOf, turnOf } from "@holdpoint/repair";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

describe("the prompt", () => {
  test("tells the package, the file and the lines, and what the tests are for", () => {
    const task = { package: "minimist", version: "1.2.8", file: "index.js", hint: { fromLine: 3, toLine: 32 } };
    expect(promptOf(task)).toMatchInlineSnapshot(`
      [
        {
          "content": "You repair a JavaScript package in a sandbox. Use the tools. Calls of one turn are run in order.
      Change as little as possible, and never the tests: the untouched ones decide.
      When all tests pass, or when you give up, answer without calling a tool.",
          "role": "system",
        },
        {
          "content": "One operator or literal of the package minimist 1.2.8 was changed, and its own tests now fail.
      The change is in index.js, lines 3 to 32. Find it and undo it.",
          "role": "user",
        },
      ]
    `);
  });

  test("says where to look so that it can be read again, and nothing of the site", () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(...packages), (seed, spec) => {
        const task = taskOf({ seed, spec });
        const messages = promptOf(task);
        expect(messages.map(({ role }) => role)).toEqual(["system", "user"]);
        const text = messages.map(textOf).join("\n");
        expect(readPrompt(text)).toEqual({ file: task.file, hint: task.hint });
        expect(text).not.toContain(task.taskId);
        expect(text).not.toContain(task.site.kind);
      }),
    );
  });

  test("is not read out of any other text", () => {
    expect(readPrompt("Write a poem.")).toBeUndefined();
    expect(readPrompt("I think: The change is in index.js, lines 1 to 2.")).toBeUndefined();
    expect(readPrompt("The change is in index.js, lines 1 to x.")).toBeUndefined();
  });
});

describe("a message", () => {
  test("of tool calls has ids of turn and index, and arguments as JSON", () => {
    const message = callTools(3, [
      { name: "run_tests", arguments: {} },
      { name: "read_file", arguments: { path: "a" } },
    ]);
    expect(message).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "call-3-0", type: "function", function: { name: "run_tests", arguments: "{}" } },
        { id: "call-3-1", type: "function", function: { name: "read_file", arguments: '{"path":"a"}' } },
      ],
    });
    expect(ChatMessage.parse(message)).toEqual(message);
  });

  test("has its text whether in one piece, in parts, or none", () => {
    const parts = [
      { type: "text" as const, text: "a" },
      { type: "text" as const, text: "b" },
    ];
    expect(textOf({ role: "user", content: "ab" })).toBe("ab");
    expect(textOf({ role: "tool", tool_call_id: "1", content: parts })).toBe("ab");
    expect(textOf({ role: "assistant", content: null })).toBe("");
    expect(textOf({ role: "assistant" })).toBe("");
  });

  test("of any role has its content in one piece or in parts", () => {
    const contents = ["ab", [{ type: "text", text: "ab" }]];
    for (const content of contents) {
      const messages = [
        { role: "system", content },
        { role: "user", content },
        { role: "assistant", content },
        { role: "tool", tool_call_id: "call-0-0", content },
      ];
      for (const message of messages) expect(ChatMessage.parse(message)).toEqual(message);
    }
  });

  test("of another shape is none", () => {
    expect(ChatMessage.safeParse({ role: "user", content: null }).success).toBe(false);
    expect(ChatMessage.safeParse({ role: "assistant", content: 1 }).success).toBe(false);
    expect(ChatMessage.safeParse({ role: "assistant", content: "x", tool_calls: [{}] }).success).toBe(false);
    expect(ChatMessage.safeParse({ role: "tool", content: "x" }).success).toBe(false);
    expect(ChatMessage.safeParse({ role: "robot", content: "x" }).success).toBe(false);
    expect(ChatMessage.safeParse({ role: "user", content: [{ type: "image_url" }] }).success).toBe(false);
  });

  test("of an assistant ends a turn", () => {
    expect(turnOf([])).toBe(0);
    expect(
      turnOf([
        { role: "user", content: "x" },
        { role: "assistant", content: "y" },
        { role: "tool", tool_call_id: "1", content: "z" },
        { role: "tool", tool_call_id: "2", content: "z" },
        { role: "assistant", content: "y" },
      ]),
    ).toBe(2);
  });
});
