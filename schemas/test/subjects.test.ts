/** Subjects: what a builder makes its parser reads back, and everything else is nothing. */
import {
  blobBucket,
  blobSubject,
  commandSubject,
  controlSubject,
  filters,
  logSubject,
  operations,
  outcomeSubject,
  parseRpcSubject,
  parseStreamSubject,
  resultSubject,
  roles,
  rpcSubject,
  seedSubject,
  serviceSubject,
  snapshotBucket,
  snapshotSubject,
  streamName,
  streamSubjects,
  WriterRole,
} from "@holdpoint/schemas";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const token = fc.stringMatching(/^[A-Za-z0-9_-]{1,128}$/);
const role = fc.constantFrom(...roles);
const writer = fc.record({ role: fc.constantFrom(...WriterRole.options), instance: token, worker: token });
const sequence = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const episode = fc.record({ rollout: token, attempt: fc.maxSafeNat() });

/** Texts that are hardly ever a subject of ours, and texts that nearly are. */
const anything = fc.oneof(
  fc.string(),
  fc
    .array(
      fc.oneof(token, fc.constantFrom("hp", "cmd", "log", "control", "outcome", "rpc", "seed", "agent", "1", "01", "")),
      {
        maxLength: 8,
      },
    )
    .map((tokens) => tokens.join(".")),
);

describe("a builder and its parser are inverse", () => {
  test("for commands, also for operations that are none", () => {
    fc.assert(
      fc.property(token, fc.constantFrom(...operations), (run, operation) => {
        const address = { kind: "command", run, operation, name: operation };
        expect(parseStreamSubject(commandSubject(run, operation))).toEqual(address);
      }),
    );
    const unknown = { kind: "command", run: "demo", operation: undefined };
    expect(parseStreamSubject("hp.demo.cmd.pause")).toEqual({ ...unknown, name: "pause" });
    expect(parseStreamSubject("hp.demo.cmd.prepare.c1")).toEqual({ ...unknown, name: "prepare.c1" });
  });

  test("for outcomes", () => {
    fc.assert(
      fc.property(token, sequence, (run, at) => {
        expect(parseStreamSubject(outcomeSubject(run, at))).toEqual({ kind: "outcome", run, sequence: at });
      }),
    );
  });

  test("for control", () => {
    fc.assert(
      fc.property(token, (run) => {
        expect(parseStreamSubject(controlSubject(run))).toEqual({ kind: "control", run });
      }),
    );
  });

  test("for logs and results", () => {
    fc.assert(
      fc.property(token, writer, (run, by) => {
        expect(parseStreamSubject(logSubject(run, by))).toEqual({ kind: "log", run, writer: by });
        expect(parseStreamSubject(resultSubject(run, by))).toEqual({ kind: "result", run, writer: by });
      }),
    );
  });

  test("for calls and first seeds", () => {
    fc.assert(
      fc.property(token, episode, role, token, (run, of, to, name) => {
        expect(parseRpcSubject(rpcSubject(run, of, to, name))).toEqual({
          kind: "call",
          run,
          episode: of,
          role: to,
          method: name,
        });
        expect(parseRpcSubject(seedSubject(run, to, name))).toEqual({ kind: "seed", run, role: to, instance: name });
      }),
    );
  });
});

describe("a parser", () => {
  test("reads a subject in one way only: what it reads is built again as it was", () => {
    fc.assert(
      fc.property(anything, (text) => {
        const address = parseStreamSubject(text);
        if (address === undefined) return;
        const { run } = address;
        const rebuilt = {
          command: () => `hp.${run}.cmd.${address.kind === "command" ? address.name : ""}`,
          outcome: () => outcomeSubject(run, address.kind === "outcome" ? address.sequence : 0),
          control: () => controlSubject(run),
          log: () => (address.kind === "log" ? logSubject(run, address.writer) : ""),
          result: () => (address.kind === "result" ? resultSubject(run, address.writer) : ""),
        }[address.kind]();
        expect(rebuilt).toBe(text);
      }),
    );
  });

  test("takes a call of a rollout that is named seed for a call, and a seed for a seed", () => {
    const call = rpcSubject("demo", { rollout: "seed", attempt: 0 }, "agent", "seed");
    expect(parseRpcSubject(call)).toMatchObject({ kind: "call", episode: { rollout: "seed", attempt: 0 } });
    expect(parseRpcSubject("hp.demo.rpc.seed.agent.main")).toMatchObject({ kind: "seed", instance: "main" });
  });

  test.each([
    "",
    "hp",
    "hp.demo",
    "hp..control",
    "hp.de mo.control",
    "xx.demo.control",
    "hp.demo.control.more",
    "hp.demo.cmd",
    "hp.demo.unknown",
    "hp.demo.outcome",
    "hp.demo.outcome.0",
    "hp.demo.outcome.-1",
    "hp.demo.outcome.01",
    "hp.demo.outcome.1e3",
    "hp.demo.outcome.0x10",
    "hp.demo.outcome. 1",
    "hp.demo.outcome.9007199254740992",
    "hp.demo.outcome.1.2",
    "hp.demo.log",
    "hp.demo.log.agent.main",
    "hp.demo.log.agent.main.0.more",
    "hp.demo.log.judge.main.0",
    "hp.demo.log.agent.*.0",
    "hp.demo.log.agent.main.>",
    "hp.demo.result.agent.main.",
    "live.hp.demo.control",
    "hp.demo.ctl.status",
    "hp.demo.rpc.r.0.agent.seed",
  ])("of the stream finds nothing in %j", (subject) => {
    expect(parseStreamSubject(subject)).toBeUndefined();
  });

  test.each([
    "",
    "hp.demo.rpc",
    "hp.demo.rpc.r.0.agent",
    "hp.demo.rpc.r.00.agent.tool",
    "hp.demo.rpc.r.-1.agent.tool",
    "hp.demo.rpc.r.1e2.agent.tool",
    "hp.demo.rpc.r.99999999999999999.agent.tool",
    "hp.demo.rpc.r.9007199254740993.agent.tool",
    "hp.demo.rpc.r.0.trainer.tool",
    "hp.demo.rpc.r.0.agent.tool.more",
    "hp.demo.rpc.*.0.agent.tool",
    "hp.demo.rpc.seed.trainer.main",
    "hp.demo.rpc.seed.agent",
    "hp.demo.rpc.seed.agent.>",
    "hp.demo.log.r.0.agent.tool",
    "xx.demo.rpc.seed.agent.main",
    "hp.de mo.rpc.seed.agent.main",
  ])("of calls finds nothing in %j", (subject) => {
    expect(parseRpcSubject(subject)).toBeUndefined();
  });
});

describe("the names of a run's stream and bucket", () => {
  test("are made of its id", () => {
    expect(streamName("demo")).toBe("HP_demo");
    expect(blobBucket("demo")).toBe("HPB_demo");
    expect(snapshotBucket("demo")).toBe("HPF_demo");
    expect(blobSubject("demo", "00ff", 2)).toBe("hpb.demo.00ff.2");
    expect(snapshotSubject("demo", "agent.main.0", 2)).toBe("hpf.demo.agent.main.0.2");
    expect(streamSubjects("demo")).toEqual([
      "hp.demo.cmd.>",
      "hp.demo.outcome.>",
      "hp.demo.control",
      "hp.demo.log.>",
      "hp.demo.result.>",
    ]);
  });

  test("are refused where the id is no token", () => {
    for (const make of [streamName, blobBucket, snapshotBucket, streamSubjects])
      expect(() => make("a.b")).toThrow("expected 1 to 128");
  });
});

/** Whether a subject matches a filter, in NATS' manner. */
function covered(filter: string, subject: string): boolean {
  const pattern = filter.replaceAll(".", "\\.").replaceAll("*", "[^.]+").replace(">", ".+");
  return new RegExp(`^${pattern}$`).test(subject);
}

test("the wildcards cover what they are for, and nothing else", () => {
  const agent = { role: "agent", instance: "main", worker: "0" } as const;
  const call = rpcSubject("demo", { rollout: "r", attempt: 2 }, "agent", "tool");
  expect(covered(filters.commands("demo"), commandSubject("demo", "prepare"))).toBe(true);
  expect(covered(filters.outcomes("demo"), outcomeSubject("demo", 7))).toBe(true);
  expect(covered(filters.services("demo"), serviceSubject("demo", "status"))).toBe(true);
  expect(covered(filters.logs("demo"), logSubject("demo", agent))).toBe(true);
  expect(covered(filters.logsOf("demo", "agent"), logSubject("demo", agent))).toBe(true);
  expect(covered(filters.logsOf("demo", "model"), logSubject("demo", agent))).toBe(false);
  expect(covered(filters.results("demo"), resultSubject("demo", agent))).toBe(true);
  expect(covered(filters.rpcOf("demo", "agent"), call)).toBe(true);
  expect(covered(filters.rpcOf("demo", "model"), call)).toBe(false);
  expect(covered(filters.rpcOf("demo", "agent"), seedSubject("demo", "agent", "main"))).toBe(false);
  expect(covered(filters.live("demo"), `live.${controlSubject("demo")}`)).toBe(true);
  expect(covered(filters.live("other"), `live.${controlSubject("demo")}`)).toBe(false);
});
