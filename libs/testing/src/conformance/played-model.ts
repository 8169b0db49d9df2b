/** The model that the kit plays for an agent: it answers when it is told to, and refuses while a checkpoint is open. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Episode } from "@holdpoint/schemas";
import type { Patience } from "./waiting.ts";

interface Waiting {
  readonly turn: number;
  readonly body: string;
  readonly response: ServerResponse;
}

/** The assistant message with which it answers a turn. */
type Says = (turn: number) => object;

export interface PlayedModelOptions {
  readonly says: Says;
  readonly patience: Patience;
}

export class PlayedModel {
  readonly url: string;
  isClosed: () => boolean = () => false;
  readonly #server: Server;
  readonly #says: Says;
  readonly #patience: Patience;
  /** By episode: the call that waits, and how many were answered. A call is answered again as before. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #answered = new Map<string, number>();

  private constructor(server: Server, url: string, { says, patience }: PlayedModelOptions) {
    this.#server = server;
    this.url = url;
    this.#says = says;
    this.#patience = patience;
    server.on("request", (request, response) => void this.#take(request, response));
  }

  static async start(options: PlayedModelOptions): Promise<PlayedModel> {
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.listen({ host: "127.0.0.1", port: 0 }, resolve);
    });
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return new PlayedModel(server, `http://127.0.0.1:${port}`, options);
  }

  /** The text of the message with which the turn is answered: what a digest is made of. */
  textOf(turn: number): string {
    return JSON.stringify(this.#says(turn));
  }

  answeredOf(episode: Episode): number {
    return this.#answered.get(keyOf(episode)) ?? 0;
  }

  /** The calls up to `turns` of this episode were answered in an attempt before. */
  continue(episode: Episode, turns: number): void {
    this.#answered.set(keyOf(episode), turns);
  }

  /** The body of the episode's call that waits for its answer, once it is for a turn that was not answered. */
  pending(episode: Episode): Promise<string> {
    return this.#patience.until(`a model call of ${keyOf(episode)}`, () => {
      const waiting = this.#waiting.get(keyOf(episode));
      return waiting !== undefined && waiting.turn === this.answeredOf(episode) ? waiting.body : undefined;
    });
  }

  /** Answers the call that waits. */
  async answer(episode: Episode): Promise<void> {
    await this.pending(episode);
    const key = keyOf(episode);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    this.#answered.set(key, waiting.turn + 1);
    this.#reply(waiting);
  }

  /** A checkpoint has opened: who waits is refused. */
  refuseAll(): void {
    for (const { response } of this.#waiting.values()) refuse(response);
    this.#waiting.clear();
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) if (chunk instanceof Uint8Array) chunks.push(chunk);
    const { headers } = request;
    const episode = {
      rollout: String(headers["x-holdpoint-rollout"]),
      attempt: Number(headers["x-holdpoint-attempt"]),
    };
    const turn = Number(headers["x-holdpoint-turn"]);
    const waiting = { turn, body: Buffer.concat(chunks).toString(), response };
    if (this.isClosed()) refuse(response);
    else if (turn < this.answeredOf(episode)) this.#reply(waiting);
    else this.#wait(keyOf(episode), waiting);
  }

  #wait(key: string, waiting: Waiting): void {
    this.#waiting.set(key, waiting);
    waiting.response.once("close", () => {
      if (this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    });
  }

  #reply({ turn, response }: Waiting): void {
    const choices = [{ index: 0, message: this.#says(turn), finish_reason: "tool_calls" }];
    send(response, 200, { id: `chatcmpl-${turn}`, object: "chat.completion", created: 0, model: "played", choices });
  }
}

function refuse(response: ServerResponse): void {
  const error = { message: "a checkpoint is open", type: "server_error", param: null, code: "admission_closed" };
  send(response, 503, { error });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function keyOf({ rollout, attempt }: Episode): string {
  return `${rollout}/${attempt}`;
}
