/**
 * The edge at which tools are called over MCP, and a place to ask whether this process is well.
 *
 * 1. A caller is known by its token alone: no request depends on one before it, so that a new process serves an old client.
 * 2. While admission is closed tool calls are held, and not in flight; everything else goes through.
 * 3. A wrong token, or none, is answered 401 before the body is read.
 */
import { HoldpointError } from "@holdpoint/errors";
import type { Episode } from "@holdpoint/schemas";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Latch } from "../latch.ts";
import type { Desk, ResourcesParticipant } from "./desk.ts";
import type { answerMcp } from "./mcp-answer.ts";
import type { Resources } from "./define-resources.ts";
import type { ToolCalls } from "./tool-calls.ts";

export interface McpAddress {
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Default: 0, a free one; clients outlive the process only where it is named. */
  readonly port?: number;
  /** What clients are told, where they come by another way. Default: the address that is listened on. */
  readonly publicUrl?: string;
}

const mcpPath = "/mcp";
const healthPath = "/health";

interface Opened {
  readonly desk: Desk;
  readonly calls: ToolCalls;
}

export class McpEdge {
  readonly url: string;
  readonly #server: Server;
  readonly #participant: ResourcesParticipant;
  readonly #answer: typeof answerMcp;
  readonly #opening = new Latch();
  #opened: Opened | undefined;
  /** MCP requests whose clients still wait. */
  #waiting = 0;
  readonly #answered = new Latch();
  readonly #stopping = new AbortController();

  private constructor(server: Server, participant: ResourcesParticipant, { url, answer }: Parts) {
    this.url = url;
    this.#server = server;
    this.#participant = participant;
    this.#answer = answer;
    server.on("request", (request, response) => void this.#handle(request, response));
  }

  /**
   * Listens; what comes before `open` waits for it.
   *
   * @throws HoldpointError `invalid_request` where the address cannot be listened on
   */
  static async listen(
    { name }: Resources,
    participant: ResourcesParticipant,
    { host = "127.0.0.1", port = 0, publicUrl }: McpAddress,
  ): Promise<McpEdge> {
    const { answerMcp: answer } = await import("./mcp-answer.ts"); // of use to no other role
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      const words = `${name} cannot serve MCP on ${host}:${port}: name another address`;
      server.once("error", (cause) => reject(new HoldpointError("invalid_request", words, { cause })));
      server.listen(port, host, resolve);
    });
    const address = server.address();
    const url = publicUrl ?? (isNet(address) ? urlOf(address) : "");
    return new McpEdge(server, participant, { url, answer });
  }

  open(desk: Desk, calls: ToolCalls): void {
    this.#opened = { desk, calls };
    this.#opening.changed();
  }

  /**
   * Takes no more, and returns once all that came is answered: calls that run with their result, those that have not begun with
   * `unavailable`. A client that was merely cut off would wait for as long as it waits for anything.
   */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => {
      this.#server.close(resolve);
    });
    this.#stopping.abort(new HoldpointError("unavailable", "this server stops: ask again"));
    await this.#answered.until(() => this.#waiting === 0);
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#route(request, response);
    } catch (error) {
      this.#participant.options.trouble("an MCP request was not answered", error);
      if (!response.headersSent) say(response, 500, { message: "internal error" });
      else response.destroy();
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path] = (request.url ?? "").split("?");
    if (path === healthPath) return say(response, 200, { status: "serving", waiting: this.#waiting });
    if (path !== mcpPath) return say(response, 404, { message: `expected ${mcpPath} or ${healthPath}` });
    this.#waiting += 1;
    response.once("close", () => {
      this.#waiting -= 1;
      this.#answered.changed();
    });
    const gone = AbortSignal.any([goneWith(response), this.#stopping.signal]);
    await this.#opening.until(() => this.#opened !== undefined, gone);
    if (this.#opened === undefined) return;
    const { desk, calls } = this.#opened;
    const episode = authorized(desk, request, response);
    if (episode === undefined) return;
    if (request.method === "POST") return this.#answer({ desk, calls, episode, gone }, request, response);
    say(response, 405, { message: "no streams and no sessions are kept here: expected POST" }, { allow: "POST" });
  }
}

interface Parts {
  readonly url: string;
  readonly answer: typeof answerMcp;
}

function isNet(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}${mcpPath}`;
}

/** Aborted when the client has gone before it was answered. */
function goneWith(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once("close", () => {
    if (!response.writableFinished) controller.abort(new HoldpointError("unavailable", "the client has gone"));
  });
  return controller.signal;
}

/** Whose token the request carries; undefined where it was answered that it carries none that counts. */
function authorized(desk: Desk, { headers }: IncomingMessage, response: ServerResponse): Episode | undefined {
  const [, token] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  try {
    if (token !== undefined) return desk.grants?.episodeOf(token);
    const message = "expected Authorization: Bearer with the token of a grant";
    say(response, 401, { message }, { "www-authenticate": "Bearer" });
  } catch (error) {
    if (!HoldpointError.is(error, "unauthorized")) throw error;
    const { message } = error;
    say(response, 401, { message }, { "www-authenticate": 'Bearer error="invalid_token"' });
  }
  return undefined;
}

function say(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(`${JSON.stringify(body)}\n`);
}
