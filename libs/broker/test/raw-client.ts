/** The NATS protocol by hand: what the server says to one line, without a client that interprets it. */
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import type { Credentials } from "@holdpoint/broker";

/** Sends what it is given, and yields what comes, until closed. */
interface Wire {
  send(text: string): void;
  close(): void;
  onText(listener: (text: string) => void): void;
}

async function tcp(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url);
  const socket = connectTcp(Number(port), hostname).setEncoding("utf8");
  await once(socket, "connect");
  return {
    send: (text) => void socket.write(text),
    close: () => void socket.destroy(),
    onText: (listener) => void socket.on("data", (data) => listener(String(data))),
  };
}

async function webSocket(url: string): Promise<Wire> {
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  await once(socket, "open");
  return {
    send: (text) => socket.send(new TextEncoder().encode(text)),
    close: () => socket.close(),
    onText: (listener) =>
      socket.addEventListener("message", ({ data }) => {
        listener(data instanceof ArrayBuffer ? new TextDecoder().decode(data) : String(data));
      }),
  };
}

export class RawClient {
  readonly #wire: Wire;
  #received = "";
  #arrived: () => void = () => {};
  #subscriptions = 0;

  private constructor(wire: Wire) {
    this.#wire = wire;
    wire.onText((text) => {
      this.#received += text;
      this.#arrived();
    });
  }

  /** Connects by the protocol of `url`. @throws Error with the server's words where it refuses the credentials */
  static async connect(url: string, credentials: Credentials | undefined): Promise<RawClient> {
    const client = new RawClient(await (url.startsWith("ws") ? webSocket(url) : tcp(url)));
    const login = credentials === undefined ? {} : { user: credentials.user, pass: credentials.password };
    const refusal = await client.#ask(
      `CONNECT ${JSON.stringify({ verbose: false, pedantic: false, headers: true, no_responders: true, ...login })}\r\n`,
    );
    if (refusal !== undefined) throw new Error(refusal);
    return client;
  }

  mayPublish(subject: string): Promise<boolean> {
    return this.#may(`PUB ${subject} 2\r\n{}\r\n`);
  }

  maySubscribe(subject: string): Promise<boolean> {
    this.#subscriptions += 1;
    return this.#may(`SUB ${subject} ${this.#subscriptions}\r\n`);
  }

  close(): void {
    this.#wire.close();
  }

  async #may(line: string): Promise<boolean> {
    const refusal = await this.#ask(line);
    if (refusal === undefined) return true;
    if (refusal.startsWith("Permissions Violation")) return false;
    throw new Error(refusal);
  }

  /** The error that the server answers to `line` with, if any: whatever it says comes before the answer to a ping. */
  async #ask(line: string): Promise<string | undefined> {
    this.#received = "";
    this.#wire.send(`${line}PING\r\n`);
    for (;;) {
      const refusal = /-ERR '([^\r\n]*)'\r\n/.exec(this.#received)?.[1];
      if (refusal !== undefined && (this.#received.includes("PONG\r\n") || refusal.startsWith("Authorization")))
        return refusal;
      if (this.#received.includes("PONG\r\n")) return undefined;
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
  }
}
