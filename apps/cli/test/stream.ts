/** A run's stream as a test tells it: events of each writer, in order, on a clock of whole seconds. */
import { encodeEvents, MemoryLog } from "@holdpoint/eventsourcing";
import { type Content, controlSubject, logSubject, resultSubject, type WriterRole } from "@holdpoint/schemas";
import { createHash } from "node:crypto";
import { type History, HistoryReader } from "../src/demo/history.ts";

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export function content(text: string): Content {
  return { digest: digest(text), bytes: text.length, text };
}

interface TestEvent {
  readonly type: string;
  readonly data: Record<string, unknown>;
}

export class TestStream {
  readonly log = new MemoryLog("HP_demo", () => this.nowMs);
  nowMs = 1_000_000;
  #messages = 0;

  /** Appends one message of `events` a second after the one before; returns its sequence. */
  async say(writer: WriterRole | "control", ...events: readonly TestEvent[]): Promise<number> {
    this.nowMs += 1000;
    this.#messages += 1;
    const isEnd = events[0]?.type === "episode.ended";
    const named = { role: writer === "control" ? "agent" : writer, instance: "main", worker: "0" } as const;
    const subject =
      writer === "control" ? controlSubject("demo") : isEnd ? resultSubject("demo", named) : logSubject("demo", named);
    const last = await this.log.lastOn(subject);
    const result = await this.log.append({
      ...encodeEvents(`${writer}-1`, events),
      subject,
      messageId: `m${this.#messages}`,
      expected: { subject, sequence: last?.sequence ?? 0 },
    });
    if (!result.stored) throw new Error(`not stored on ${subject}`);
    return result.sequence;
  }

  async history(): Promise<History> {
    const reader = new HistoryReader();
    await this.log.read({ upTo: await this.log.lastSequence() }, (message) => reader.take(message));
    return reader.history();
  }
}

/** What an episode says as it goes; `attempt` 0 unless told. */
export class TestEpisode {
  readonly rollout: string;
  attempt = 0;
  readonly #stream: TestStream;

  constructor(stream: TestStream, rollout: string) {
    this.#stream = stream;
    this.rollout = rollout;
  }

  get episode() {
    return { rollout: this.rollout, attempt: this.attempt };
  }

  async open(): Promise<void> {
    const named = { sessionId: "s1", task: content("task"), agent: "main", resources: "main" };
    await this.#stream.say("environment", {
      type: "episode.opened",
      data: { ...this.episode, ...named, budgetMs: null, policyVersion: 0 },
    });
  }

  async activate(): Promise<void> {
    await this.#stream.say("agent", { type: "activation.started", data: this.episode });
  }

  /** The model answers turn `turn`; the agent receives it. */
  async call(turn: number, answer = `answer ${turn}`): Promise<void> {
    await this.finishCall(turn, answer);
    await this.#stream.say("agent", {
      type: "call.received",
      data: { ...this.episode, turn, response: content(answer) },
    });
  }

  async finishCall(turn: number, answer = `answer ${turn}`): Promise<void> {
    const row = { request: digest(`request ${turn}`), response: content(answer), staging: null };
    const tokens = { policyVersion: 0, promptTokens: 10, completionTokens: 5 };
    await this.#stream.say("model", { type: "call.finished", data: { ...this.episode, turn, ...row, ...tokens } });
  }

  /** The tool is executed as `execution`, and the agent receives what it gave. */
  async tool(turn: number, execution: string, result = `result ${turn}`): Promise<void> {
    await this.executeTool(turn, execution, result);
    await this.#stream.say("agent", {
      type: "tool.returned",
      data: { ...this.episode, turn, index: 0, result: content(result) },
    });
  }

  async executeTool(turn: number, execution: string, result = `result ${turn}`): Promise<void> {
    const place = { ...this.episode, turn, index: 0 };
    await this.#stream.say(
      "resources",
      { type: "tool.started", data: { ...place, name: "run_tests", arguments: digest("{}"), snapshot: "t1" } },
      { type: "tool.finished", data: { ...place, execution, result: content(result) } },
    );
  }

  async end(chargedMs: number, reward = 1): Promise<void> {
    const verdict = content(JSON.stringify({ reward, treeDigest: digest("tree") }));
    await this.#stream.say("agent", { type: "activation.ended", data: { ...this.episode, output: content("done") } });
    await this.#stream.say("resources", {
      type: "verify.finished",
      data: { ...this.episode, execution: `v${this.attempt}`, verdict },
    });
    await this.#stream.say("environment", {
      type: "episode.bookmarked",
      data: { ...this.episode, stage: "return", verdict },
    });
    const ended = { sessionId: "s1", status: "finished", reward, verdict, chargedMs, policyVersion: 0, why: null };
    await this.#stream.say("environment", { type: "episode.ended", data: { ...this.episode, ...ended } });
  }
}

/** Control events of a checkpoint that holds `scope`; returns its cut. */
export async function checkpoint(
  stream: TestStream,
  checkpointId: string,
  scope: readonly { rollout: string; attempt: number }[],
): Promise<number> {
  const command = 1;
  await stream.say("control", {
    type: "checkpoint.opened",
    data: { command, checkpointId, kind: "checkpoint", deadlineAtMs: 9e12 },
  });
  const cut = await stream.say("control", {
    type: "checkpoint.captured",
    data: { command, checkpointId, stream: "HP_demo", scope, holdings: [] },
  });
  const committed = {
    cut: { HP_demo: cut },
    anchor: digest("anchor"),
    scope,
    holdings: [],
    capturedAtMs: stream.nowMs,
  };
  await stream.say("control", { type: "checkpoint.committed", data: { command, checkpointId, ...committed } });
  await stream.say("control", { type: "checkpoint.resumed", data: { command, checkpointId, reason: "command" } });
  return cut;
}

/** Control events of a restore that continues `assignments`. */
export async function restore(
  stream: TestStream,
  {
    source,
    cut,
    assignments,
  }: { source: string; cut: number; assignments: { rollout: string; from: number; to: number }[] },
): Promise<void> {
  const ids = { command: 2, checkpointId: `r-${source}`, source };
  await stream.say("control", { type: "restore.started", data: { ...ids, cut: { HP_demo: cut }, assignments } });
  const continued = assignments.map(({ rollout, to }) => ({ rollout, attempt: to }));
  const entry = {
    role: "agent",
    instance: "main",
    worker: "0",
    expected: null,
    found: null,
    continued,
    restarted: [],
    leftOut: [],
  };
  await stream.say("control", { type: "restore.installed", data: { ...ids, receipt: [entry] } });
}
