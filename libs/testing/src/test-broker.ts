/** A real broker for the tests of one file, and connections to it. */
import { type BrokerUser, type RunningBroker, startBroker, type StartOptions } from "@holdpoint/broker";
import { type Connection, connectTo, ensureStream, type StreamOptions } from "@holdpoint/jetstream";

/** Starts a broker with `nats.conf` on free ports and a folder of its own. */
export async function startTestBroker(options: StartOptions = {}): Promise<TestBroker> {
  return new TestBroker(await startBroker(options));
}

const runBytes = 2 ** 26;

export class TestBroker {
  readonly server: RunningBroker;
  readonly #connections: Connection[] = [];
  #runs = 0;

  constructor(server: RunningBroker) {
    this.server = server;
  }

  /** A connection of its own, closed by `stop`. `url` leads another way, such as through a proxy. */
  async connectAs(user: BrokerUser, url = this.server.url): Promise<Connection> {
    const { password } = this.server.credentialsOf(user);
    const connection = await connectTo({ url, user, password, name: `test ${user}` });
    this.#connections.push(connection);
    return connection;
  }

  /** The name of a run that nobody has used, with its streams made; small ones, as the server sets their room aside. */
  async newRun(options: StreamOptions = {}): Promise<string> {
    const run = `run-${this.#runs++}`;
    const connection = await this.connectAs("coordinator");
    await ensureStream(connection, run, { maxBytes: runBytes, maxBlobBytes: runBytes, ...options });
    await connection.close();
    return run;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
    await this.server.stop();
  }
}
