/** A small HTTP server for JSON: it listens before it can serve, since its address is announced first. */
import { HoldpointError } from "@holdpoint/errors";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { errorAnswer, type HttpAnswer, internalError } from "./chat-response.ts";

export interface HttpCall {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

export type Handle = (call: HttpCall) => Promise<HttpAnswer>;

/** A conversation of hundreds of turns stays far below. */
const maxBodyBytes = 64 * 1024 * 1024;
/** Longer than clients keep a connection, so that they are the ones who close it. */
const keepAliveMs = 75_000;

export class HttpServer {
  readonly url: string;
  readonly #server: Server;
  #handle: Handle = async () => errorAnswer(new HoldpointError("unavailable", "the model server is starting"));

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
    server.on("request", (request, response) => void this.#answer(request, response));
  }

  /** Listens; until `serve` every request is told to come back. */
  static async listen(host: string, port: number): Promise<HttpServer> {
    const server = createServer({ keepAliveTimeout: keepAliveMs });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port }, () => resolve());
    });
    const address = server.address();
    const bound = typeof address === "object" && address !== null ? address.port : port;
    return new HttpServer(server, `http://${host.includes(":") ? `[${host}]` : host}:${bound}`);
  }

  serve(handle: Handle): void {
    this.#handle = handle;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished) gone.abort(new HoldpointError("unavailable", "the caller has gone"));
    });
    try {
      send(response, await this.#handled(request, gone.signal).catch(errorAnswer));
    } catch {
      send(response, internalError); // what was to be sent cannot be written; nothing of it has gone out
    }
  }

  async #handled(request: IncomingMessage, signal: AbortSignal): Promise<HttpAnswer> {
    const body = await read(request);
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    return this.#handle({ method: request.method ?? "GET", path: pathname, headers: request.headers, body, signal });
  }
}

/** @throws where it cannot be written as HTTP and JSON; nothing is sent then */
function send(response: ServerResponse, { status, headers, body }: HttpAnswer): void {
  if (response.destroyed) return;
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(text);
}

async function read(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    if (!(chunk instanceof Uint8Array)) continue;
    bytes += chunk.length;
    if (bytes > maxBodyBytes) throw new HoldpointError("invalid_request", `a body may have ${maxBodyBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
