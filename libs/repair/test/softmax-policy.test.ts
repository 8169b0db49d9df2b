import {
  applyEdit,
  type AssistantMessage,
  callTools,
  type ChatMessage,
  featureNames,
  flip,
  formatReport,
  initialWeights,
  maxTries,
  packages,
  policyReply,
  promptOf,
  scriptedReply,
  sites,
  taskOf,
  textOf,
  toolArguments,
  type ToolCall,
} from "@holdpoint/repair";
import { describe, expect, test } from "vitest";
import { broken, conversation, failed, listed, read, task, tested } from "./conversation.ts";
import { benchOf, play } from "./workbench.ts";

const [tiny] = packages.filter(({ name }) => name === "expand-template");
if (tiny === undefined) throw new Error("a package is gone");
const weights = initialWeights();

function namesOf(message: AssistantMessage): readonly string[] {
  return (message.tool_calls ?? []).map((call) => call.function.name);
}

function editsOf(calls: readonly ToolCall[] | undefined) {
  return (calls ?? []).map((call) => toolArguments.edit_file.parse(JSON.parse(call.function.arguments)));
}

function reply(messages: readonly ChatMessage[]) {
  return policyReply({ weights, messages, seed: 1 });
}

describe("the softmax policy", () => {
  test("lists the files, then reads the broken one and runs the tests, then edits, then tests", () => {
    expect(reply(promptOf(task))).toEqual({
      message: callTools(0, [{ name: "list_files", arguments: {} }]),
      staging: null,
    });
    expect(reply(conversation(task, [listed]))).toEqual({
      message: callTools(1, [
        { name: "read_file", arguments: { path: "index.js" } },
        { name: "run_tests", arguments: {} },
      ]),
      staging: null,
    });
    const first = reply(conversation(task, [listed], [read, tested]));
    expect(namesOf(first.message)).toEqual(["edit_file"]);
    const [edit] = editsOf(first.message.tool_calls);
    const after = conversation(task, [listed], [read, tested], [["edit_file", edit, "edited line 1\n"]]);
    expect(reply(after)).toEqual({ message: callTools(3, [{ name: "run_tests", arguments: {} }]), staging: null });
  });

  test("runs the tests before it edits, where they were not run", () => {
    const { message } = policyReply({ weights, messages: conversation(task, [listed], [read]), seed: 1 });
    expect(namesOf(message)).toEqual(["run_tests"]);
  });

  test("is done, with words and no call, as soon as the tests pass", () => {
    const passed = ["run_tests", {}, "All 27 tests passed.\n"] as const;
    for (const messages of [conversation(task, [listed], [read, passed]), conversation(task, [passed])]) {
      expect(policyReply({ weights, messages, seed: 1 })).toEqual({
        message: { role: "assistant", content: "done" },
        staging: null,
      });
    }
  });

  test("goes by the first prompt of ours, whoever else says something before or after", () => {
    const [system, user] = promptOf(task);
    if (system === undefined || user === undefined) throw new Error("no prompt");
    const other = { ...task, file: "other.js" };
    const hello: ChatMessage = { role: "user", content: "Hello." };
    const quoted: ChatMessage = { role: "system", content: textOf(promptOf(other)[1] ?? hello) };
    const messages = [quoted, hello, user, ...promptOf(other), ...conversation(task, [listed]).slice(2)];
    const [call] = policyReply({ weights, messages, seed: 1 }).message.tool_calls ?? [];
    expect(call?.function.arguments).toBe('{"path":"index.js"}');
  });

  test("ends a conversation that is not about a repair", () => {
    const { message } = policyReply({ weights, messages: [{ role: "user", content: "Write a poem." }], seed: 1 });
    expect(message).toEqual({ role: "assistant", content: "not a repair" });
  });

  test("says the same to the same request, and by another seed tries something else", () => {
    const messages = conversation(task, [listed], [read, tested]);
    const tries = Array.from({ length: 30 }, (_, seed) => JSON.stringify(policyReply({ weights, messages, seed })));
    expect(Array.from({ length: 30 }, (_, seed) => JSON.stringify(policyReply({ weights, messages, seed })))).toEqual(
      tries,
    );
    expect(new Set(tries).size).toBeGreaterThan(20);
  });

  test("edits the line of the site that it drew as a flip would, and stages what was drawn from how many", () => {
    const all = sites(broken);
    for (let seed = 0; seed < 40; seed += 1) {
      const { message, staging } = policyReply({
        weights,
        messages: conversation(task, [listed], [read, tested]),
        seed,
      });
      const [edit, ...others] = editsOf(message.tool_calls);
      expect(others).toEqual([]);
      if (edit === undefined || staging === null) throw new Error("nothing was drawn");
      expect(all).toContainEqual(staging.choice.site);
      expect(staging.choice.candidates).toBe(all.length);
      expect(staging.logprob).toBeCloseTo(-Math.log(all.length), 9);
      expect(staging.gradient).toHaveLength(featureNames.length);
      expect(edit.path).toBe("index.js");
      expect(applyEdit(broken, edit).text).toBe(flip(broken, staging.choice.site));
    }
  });

  test("undoes the last try before the next: on another line by a call of its own, on the same line in one", () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < 100; seed += 1) {
      const start = conversation(task, [listed], [read, tested]);
      const first = editsOf(policyReply({ weights, messages: start, seed }).message.tool_calls)[0];
      if (first === undefined) throw new Error("nothing was tried");
      const flipped = applyEdit(broken, first).text;
      const again = conversation(task, [listed], [read, tested], [["edit_file", first, "edited\n"]], [tested]);
      const { message, staging } = policyReply({ weights, messages: again, seed: seed + 1000 });
      const edits = editsOf(message.tool_calls);
      if (staging === null) throw new Error("nothing was tried");
      const after = edits.reduce((text, edit) => {
        const edited = applyEdit(text, edit);
        expect(edited.answer).toBe(`edited line ${edit.line}\n`);
        return edited.text;
      }, flipped);
      expect(after).toBe(flip(broken, staging.choice.site));
      expect(after).not.toBe(flipped);
      expect(edits).toHaveLength(staging.choice.site.line === first.line ? 1 : 2);
      kinds.add(staging.choice.site.line === first.line ? "same line" : "another line");
      expect(staging.choice.candidates).toBe(sites(broken).length - 1);
    }
    expect([...kinds].toSorted((one, other) => (one < other ? -1 : 1))).toEqual(["another line", "same line"]);
  });

  test("does not try again what was refused, and has nothing to undo then", () => {
    const start = conversation(task, [listed], [read, tested]);
    const [first] = editsOf(policyReply({ weights, messages: start, seed: 5 }).message.tool_calls);
    const again = conversation(
      task,
      [listed],
      [read, tested],
      [["edit_file", first, "error: line 1 reads x"]],
      [tested],
    );
    for (let seed = 0; seed < 100; seed += 1) {
      const { message } = policyReply({ weights, messages: again, seed });
      const edits = editsOf(message.tool_calls);
      expect(edits).toHaveLength(1);
      expect(edits[0]).not.toEqual(first);
      expect(applyEdit(broken, edits[0] ?? { line: 0, old: "", new: "" }).text).not.toBe(broken);
    }
  });

  test("gives up after so many tries, each once, and never repeats one", () => {
    const hopeless = { ...task, hint: { fromLine: 1, toLine: 2 } };
    const bench = benchOf(task);
    const messages: ChatMessage[] = [...promptOf(hopeless)];
    const tried: string[] = [];
    let last: AssistantMessage = { role: "assistant" };
    do {
      const turn = messages.filter(({ role }) => role === "assistant").length;
      // Whatever it tries, the tests fail.
      const focused = featureNames.map((name) => (name === "kind: !== to ===" ? 20 : 0));
      const said = policyReply({ weights: focused, messages, seed: turn });
      last = said.message;
      messages.push(last);
      if (said.staging !== null) tried.push(String(said.staging.choice.site.position));
      for (const call of last.tool_calls ?? []) {
        const content =
          call.function.name === "run_tests" ? failed : bench.call(call.function.name, call.function.arguments);
        messages.push({ role: "tool", tool_call_id: call.id, content });
      }
    } while (last.tool_calls !== undefined);
    expect(last.content).toBe("not repaired");
    expect(tried).toHaveLength(maxTries);
    expect(new Set(tried).size).toBe(maxTries);
    expect(messages.filter(({ role }) => role === "assistant")).toHaveLength(2 + 2 * maxTries + 1);
  });

  test("gives up where nothing is left to try", () => {
    const nothing = conversation(task, [listed], [["read_file", { path: "index.js" }, "nothing();"], tested]);
    expect(policyReply({ weights, messages: nothing, seed: 1 })).toEqual({
      message: { role: "assistant", content: "not repaired" },
      staging: null,
    });
  });

  test("asks again for a file that could not be read, and not for ever", () => {
    const unread = [["read_file", { path: "index.js" }, "error: busy"] as const, tested];
    const again = conversation(task, [listed], unread);
    expect(namesOf(policyReply({ weights, messages: again, seed: 1 }).message)).toEqual(["read_file", "run_tests"]);
    const turns = Array.from({ length: 2 + 2 * maxTries }, (_, turn) => (turn === 0 ? [listed] : unread));
    const long = conversation(task, ...turns);
    expect(policyReply({ weights, messages: long, seed: 1 }).message.content).toBe("not repaired");
    const nearly = conversation(task, ...turns.slice(1));
    expect(policyReply({ weights, messages: nearly, seed: 1 }).message.tool_calls).toBeDefined();
  });

  test("takes no notice of calls without an answer, of strange tools and of broken arguments", () => {
    const start = conversation(task, [listed], [read, tested]);
    const strange: readonly ChatMessage[] = [
      { role: "user", content: "Go on." },
      { role: "tool", tool_call_id: "nobody-asked", content: "All 27 tests passed." },
    ];
    const plain = policyReply({ weights, messages: start, seed: 3 });
    expect(policyReply({ weights, messages: [...start, ...strange], seed: 3 })).toEqual(plain);
    const turnOfStrange = conversation(
      task,
      [listed],
      [read, ["bash", {}, "x"], ["edit_file", { line: 1 }, "error: x"], tested],
    );
    expect(policyReply({ weights, messages: turnOfStrange, seed: 3 })).toEqual(plain);
    const [system, user, ...rest] = start;
    const noJson = rest.map((message) => {
      if (message.role !== "assistant") return message;
      const cut: ToolCall = { id: "cut", type: "function", function: { name: "edit_file", arguments: "{" } };
      return { ...message, tool_calls: [...(message.tool_calls ?? []), cut] };
    });
    const answers: ChatMessage = { role: "tool", tool_call_id: "cut", content: "edited" };
    if (system === undefined || user === undefined) throw new Error("no prompt");
    expect(policyReply({ weights, messages: [system, user, ...noJson, answers], seed: 3 })).toEqual(plain);
    const unanswered = [...start, callTools(2, [{ name: "edit_file", arguments: {} }])];
    expect(policyReply({ weights, messages: unanswered, seed: 3 }).staging?.choice.candidates).toBe(
      sites(broken).length,
    );
  });

  test("goes by what the file was when it was first read, and by the first report", () => {
    const traced = `${failed}Stack traces name index.js at ${task.site.line}.\n`;
    const onTrace = featureNames.map((name) => (name === "line named by a stack trace" ? 50 : 0));
    const report = ["run_tests", {}, traced] as const;
    const edit = { path: "index.js", line: 1, old: "'use strict';", new: "'use strict' === 1;" };
    const later = ["read_file", { path: "index.js" }, "changed();"] as const;
    const messages = conversation(task, [listed], [read, report], [["edit_file", edit, "error: no"]], [tested, later]);
    const { staging } = policyReply({ weights: onTrace, messages, seed: 1 });
    expect(staging?.choice.site.line).toBe(task.site.line);
  });
});

describe("a whole rollout", () => {
  test("repairs a small package, and leaves the file as it was before it was broken", () => {
    const small = taskOf({ seed: 1, spec: tiny });
    const { messages, staged, solved, reward } = play({ task: small, rolloutId: "g0-r0", weights, runSeed: 1 });
    expect(solved).toBe(true);
    expect(reward).toBe(1);
    expect(messages.at(-1)).toEqual({ role: "assistant", content: "done" });
    expect(staged.at(-1)?.choice.site.position).toBe(small.site.position);
    expect(
      messages.some(({ role, ...message }) => role === "tool" && JSON.stringify(message).includes("error: ")),
    ).toBe(false);
  });

  test("is the same again from any boundary on: what it says depends on what was said, not on who asks", () => {
    const once = play({ task, rolloutId: "g1-r2", weights, runSeed: 4 });
    expect(play({ task, rolloutId: "g1-r2", weights, runSeed: 4 })).toEqual(once);
    expect(play({ task, rolloutId: "g1-r3", weights, runSeed: 4 }).messages).not.toEqual(once.messages);
    expect(play({ task, rolloutId: "g1-r2", weights, runSeed: 5 }).messages).not.toEqual(once.messages);
  });
});

describe("the scripted policy", () => {
  const script = [[{ name: "list_files", arguments: {} }], [{ name: "read_file", arguments: { path: "a" } }]] as const;

  test("says turn by turn what it is told, then that it is done, and stages nothing", () => {
    expect(scriptedReply(script, promptOf(task))).toEqual({ message: callTools(0, script[0]), staging: null });
    expect(scriptedReply(script, conversation(task, [listed]))).toEqual({
      message: callTools(1, script[1]),
      staging: null,
    });
    expect(scriptedReply(script, conversation(task, [listed], [tested]))).toEqual({
      message: { role: "assistant", content: "done" },
      staging: null,
    });
  });
});

test("a report that is formatted for the agent is one that the policy acts on", () => {
  const report = { planned: 27, passed: 27, failed: 0, failures: [], crash: null, sourceLines: [] };
  const messages = conversation(task, [listed], [read, ["run_tests", {}, formatReport(report, 27)]]);
  expect(policyReply({ weights, messages, seed: 1 }).message.content).toBe("done");
});
