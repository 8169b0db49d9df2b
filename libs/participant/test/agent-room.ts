/** A room for agents as their authors write them, with a model and a resources server that answer as they are told. */
import type { EventLog, MemoryLog } from "@holdpoint/eventsourcing";
import {
  type AgentDefinition,
  type AgentParticipant,
  type AgentServing,
  agentSpec,
  Participant,
  serveAgent,
  sha256,
} from "@holdpoint/participant";
import {
  type Access,
  type ControlEvent,
  type Episode,
  filters,
  parseRpcSubject,
  rpcSubject,
  ToolRequest,
} from "@holdpoint/schemas";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { expect, vi } from "vitest";
import * as z from "zod";
import { type AgentLogEvent, type AnswerData, type Ask, Room, turns } from "./room.ts";

/** A bound against hanging, never a measure. */
const patience = { timeout: 30_000, interval: 2 };

/** Waits for what real work brings about. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  await vi.waitFor(async () => expect(await holds()).toBe(true), patience);
}

interface Asked {
  readonly turn: number;
  readonly body: string;
  readonly headers: IncomingHttpHeaders;
}

/** A policy model over HTTP: says `turn <n>`, calls the tools it is told to, and refuses while it is closed. */
export class ModelStub {
  readonly asked: Asked[] = [];
  isClosed = false;
  /** Which turns are neither answered nor refused. */
  holds: (turn: number) => boolean = () => false;
  /** What it answers instead, as HTTP has it. */
  instead: { readonly status: number; readonly body: string } | undefined;
  reply: (turn: number) => object = (turn) => ({ role: "assistant", content: `turn ${turn}` });
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () =>
      this.#answer({ headers: request.headers, body: Buffer.concat(chunks).toString() }, response),
    );
  });
  #held: (() => void)[] = [];

  async start(): Promise<string> {
    await new Promise<void>((resolve) => void this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = z.object({ port: z.number() }).parse(this.#server.address());
    return `http://127.0.0.1:${port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Refuses everybody whom it holds, and who comes. */
  close(): void {
    this.isClosed = true;
    this.letGo();
  }

  open(): void {
    this.isClosed = false;
  }

  /** Looks again at whom it holds. */
  letGo(): void {
    const held = this.#held;
    this.#held = [];
    for (const answer of held) answer();
  }

  #answer({ headers, body }: Omit<Asked, "turn">, response: ServerResponse): void {
    const turn = Number(headers["x-holdpoint-turn"]);
    this.asked.push({ turn, body, headers });
    const answer = () => {
      if (!this.isClosed && this.holds(turn)) return void this.#held.push(answer);
      if (this.instead !== undefined) {
        response.statusCode = this.instead.status;
        return void response.end(this.instead.body);
      }
      const isRefused = this.isClosed && headers["x-holdpoint-restart"] !== "1";
      response.statusCode = isRefused ? 503 : 200;
      const refusal = { error: { message: "closed", code: "admission_closed" } };
      response.end(JSON.stringify(isRefused ? refusal : { choices: [{ message: this.reply(turn) }] }));
    };
    answer();
  }
}

export interface Serving extends AgentServing {
  readonly worker?: string;
  readonly log?: EventLog;
}

export class AgentRoom extends Room {
  readonly model = new ModelStub();
  /** `<name>(<arguments>) as <turn>/<index>`, as the resources server was asked; then `, a restart` where the caller says so. */
  readonly tools: string[] = [];
  /** What a tool gives; nothing: it is answered later, never here. */
  tool: (name: string, input: string) => Promise<string> = async (name, input) => `${name}: ${input}`;
  /** How often access was granted anew. */
  grants = 0;
  #agents = 0;

  static async open(log?: MemoryLog): Promise<AgentRoom> {
    const room = new AgentRoom(log);
    await room.#joinModel(await room.model.start());
    await room.messenger.subscribe(filters.rpcOf("room", "resources"), ({ subject, data, respond }) => {
      const body: unknown = JSON.parse(new TextDecoder().decode(data));
      void room.#serveResources(subject, body).then((reply) => respond(JSON.stringify({ ok: true, data: reply })));
    });
    return room;
  }

  /** A new life of the agent's process. */
  async agent(
    definition: AgentDefinition,
    { worker = "0", log = this.log, ...serving }: Serving = {},
  ): Promise<AgentParticipant> {
    this.#agents += 1;
    const agent = await Participant.open(
      {
        run: "room",
        instance: "main",
        worker,
        incarnation: `agent-${this.#agents}`,
        log,
        blobs: this.blobs,
        snapshots: this.snapshots,
        messenger: this.messenger,
        clock: () => this.laterMs,
        fenced: () => {},
        trouble: (what, error, about) => {
          this.troubles.push(`${what} ${String(error)}`);
          this.abouts.push(about);
        },
      },
      await agentSpec(definition),
    );
    await serveAgent(definition, agent, serving);
    await this.join(worker, agent.options.incarnation);
    await turns();
    return agent;
  }

  /** Asks an agent for something on an episode, as the environment does. */
  async call(episode: Episode, method: string, body: object = {}): Promise<unknown> {
    return this.request(rpcSubject("room", episode, "agent", method), { to: "main", ...body });
  }

  seed(episode: Episode, seed: unknown = {}, access?: Access): Promise<unknown> {
    return this.call(episode, "seed", { ...episode, sessionId: "s", seed, ...(access !== undefined && { access }) });
  }

  activate(episode: Episode): Promise<unknown> {
    return this.call(episode, "activate", { policyVersion: 3 });
  }

  /** Seeds and activates. @returns what the activation comes to */
  async run(episode: Episode, seed: unknown = {}): Promise<unknown> {
    await this.seed(episode, seed);
    return this.activate(episode);
  }

  /** What a process of the agent says of an episode, by type. */
  async saidOf({ rollout, attempt }: Episode, worker = "0"): Promise<readonly AgentLogEvent[]> {
    const said = await this.said(1, worker);
    return said.filter(({ data }) => {
      return "rollout" in data && data.rollout === rollout && "attempt" in data && data.attempt === attempt;
    });
  }

  async typesOf(episode: Episode): Promise<readonly string[]> {
    return (await this.saidOf(episode)).map(({ type }) => type);
  }

  /** A whole checkpoint of these sessions, up to its cut; the model closes before and opens after. @returns the cut */
  async checkpoint(scope: readonly Episode[], checkpointId: string, command: number): Promise<number> {
    this.model.close();
    await this.done("prepare", { checkpointId, command });
    await this.done("capture", { checkpointId, command, scope: [...scope] });
    return this.cut(scope, { checkpointId, command });
  }

  /** Asks the agent, which has to do it. */
  async done(operation: Ask["operation"], rest: Partial<Ask>): Promise<AnswerData> {
    const answer = await this.obeyed(operation, rest);
    if (answer.problem !== undefined) throw new Error(`${operation}: ${JSON.stringify(answer)}`);
    return answer;
  }

  async letGo(checkpointId: string, command: number): Promise<void> {
    this.model.open();
    await this.resume({ checkpointId, command });
    await turns();
  }

  /** Installs what `source` fixed of `from` as `to`; admission stays closed. */
  async restored(restore: {
    readonly id: string;
    readonly command: number;
    readonly source: string;
    readonly cut: number;
    readonly from: Episode;
    readonly to: number;
  }): Promise<Episode> {
    const { id: checkpointId, command, source, cut, from, to } = restore;
    const assignments = [{ rollout: from.rollout, from: from.attempt, to }];
    const data = { command, checkpointId, source, cut: { HP_room: cut }, assignments };
    await this.decide({ type: "restore.started", data });
    await this.done("restore", data);
    await this.decide({ type: "restore.installed", data: { command, checkpointId, source, receipt: [] } });
    await turns();
    return { rollout: from.rollout, attempt: to };
  }

  async #joinModel(endpoint: string): Promise<void> {
    const place = { role: "model" as const, instance: "main", worker: "0", incarnation: "model-1" };
    const announced = { announcedSequence: 1, announcedAtMs: 0, lastAtMs: null };
    const joined: ControlEvent = {
      type: "participant.joined",
      data: { ...place, mode: "exported", endpoint, ...announced },
    };
    await this.decide(joined);
  }

  async #serveResources(subject: string, body: unknown): Promise<object> {
    const address = parseRpcSubject(subject);
    if (address?.kind === "call" && address.method === "grant") {
      this.grants += 1;
      return { access: { token: `granted-${this.grants}`, expiresAtMs: 1 } };
    }
    const { name, turn, index, restart = false, ...asked } = ToolRequest.parse(body);
    this.tools.push(`${name}(${asked.arguments}) as ${turn}/${index}${restart ? ", a restart" : ""}`);
    const text = await this.tool(name, asked.arguments);
    return { result: { digest: sha256(text), bytes: Buffer.byteLength(text), text } };
  }
}

/** A request of a conversation of these messages. */
export function ask(...said: readonly string[]) {
  return { model: "m@3", messages: said.map((content) => ({ role: "user", content })) };
}

/** What a text of JSON says. */
export function jsonOf(text = "null"): unknown {
  const value: unknown = JSON.parse(text);
  return value;
}
