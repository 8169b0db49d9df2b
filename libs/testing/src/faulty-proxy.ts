/** A way to a server on which answers get lost, so that what happens then can be tested at will and not by luck. */
import { connect, createServer, type Server, type Socket } from "node:net";

export class FaultyProxy {
  readonly #server: Server;
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  /** Answers are lost from the one on that holds this text. */
  #loseFrom: string | undefined;
  #losesAnswers = false;
  #answersLost = 0;
  #isDown = false;
  #turnedAway = 0;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((client) => this.#join(client));
  }

  /** @param url where the server listens, such as `nats://127.0.0.1:4222` */
  static async before(url: string): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(new URL(url));
    await new Promise<void>((resolve) => void proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  /** Where clients connect. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return `nats://127.0.0.1:${address.port}`;
  }

  /** Pieces of what the server said, for the test to wait for. */
  get answersLost(): number {
    return this.#answersLost;
  }

  /** Connections that were tried while it was down. */
  get turnedAway(): number {
    return this.#turnedAway;
  }

  /** From here on, or from the answer on that holds `from`, the server hears everything, and nothing that it says arrives. */
  loseAnswers(from = ""): void {
    this.#loseFrom = from;
  }

  /** What the server says arrives again; what was lost stays lost, and the connections stay. */
  findAnswers(): void {
    this.#loseFrom = undefined;
    this.#losesAnswers = false;
  }

  /** Breaks every connection, and takes new ones that work. */
  heal(): void {
    this.findAnswers();
    this.#isDown = false;
    this.#breakAll();
  }

  /** Breaks every connection, and lets nobody in. */
  goDown(): void {
    this.#isDown = true;
    this.#breakAll();
  }

  async close(): Promise<void> {
    this.#breakAll();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  #breakAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(client: Socket): void {
    if (this.#isDown) {
      this.#turnedAway += 1;
      client.destroy();
      return;
    }
    const server = connect(Number(this.#target.port), this.#target.hostname);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined); // followed by "close"
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(server);
    server.on("data", (data) => {
      if (this.#loseFrom !== undefined && data.includes(this.#loseFrom)) this.#losesAnswers = true;
      if (this.#losesAnswers) this.#answersLost += 1;
      else client.write(data);
    });
  }
}
