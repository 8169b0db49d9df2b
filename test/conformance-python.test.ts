/** The conformance kit on a participant that is written in another language: the wire is the contract. */
import type { ConformanceTarget } from "@holdpoint/testing";
import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { broken, folder } from "./conformance.ts";
import { pythonEnvironment } from "./python.ts";

describe("a resources server in Python", () => {
  const workload = { seed: { target: 3 }, otherSeed: { target: 4 }, tool: { name: "add", arguments: { by: 1 } } };

  /** The Python participant in `sources`. */
  async function python(sources: string, skip: (why: string) => void): Promise<ConformanceTarget> {
    const env = await pythonEnvironment();
    if (typeof env === "string") skip(env);
    const known = typeof env === "string" ? {} : env;
    return { role: "resources", command: ["python3", join(sources, "counter.py")], env: known, workload };
  }

  test("holds the contract", async ({ skip }) => {
    expect(await broken(await python("test/python", skip))).toEqual([]);
  });

  /** The same result, as if it had been done once more. */
  const again = `await self.log.append([{"type": "tool.finished", "data": {**episode, **named, "execution": "x", "result": known, "change": {"by": 0}}}])`;
  /** Rules that it keeps, each taken out, and the promise that has to be found broken without it. */
  const faults = [
    ["counter.py", "if known is not None:\n                return known", "", "is answered again as before"],
    ["counter.py", "while self.gate.closed is not None:", "while False:", "new work waits"],
    ["counter.py", "self.gate.marks.get(episode", "{}.get(episode", "is refused as stale"],
    ["counter.py", "origin.copy(attempt=", "origin.copy(results={}, attempt=", "a restore goes on"],
    ["counter.py", 'raise Problem("invalid_request", "expected', 'raise Problem("not_found", "expected', "typed error"],
    ["counter.py", "return known\n", `${again}\n                return known\n`, "is answered again as before"],
    ["counter.py", "known.seed[", "seed[", "another one is a conflict"],
    ["log.py", "self.fenced.set()", "self._end = last.seq; return await self._publish([])", "takes over"],
    ["gate.py", "self.closed = checkpoint", "pass", "new work waits"],
    ["log.py", "DeliverPolicy.ALL", "DeliverPolicy.NEW", "killed and started again"],
  ] as const;

  test.for(faults)("in whose %s `%s` is `%s` is found out: not true that %s", async (fault, { skip }) => {
    const [file, rule, instead, says] = fault;
    const sources = mkdtempSync(join(folder, "broken-"));
    cpSync("test/python", sources, { recursive: true });
    const text = readFileSync(join(sources, file), "utf8");
    expect(text).toContain(rule);
    writeFileSync(join(sources, file), text.replace(rule, instead));
    const target = await python(sources, skip);
    const found = await broken(target, { only: (promise) => promise.includes(says), patienceMs: 3_000 });
    expect(found).toHaveLength(1);
  });
});
