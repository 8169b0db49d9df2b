import { HoldpointError } from "@holdpoint/errors";
import { rm } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import type { Broker } from "./broker.ts";
import { type BrokerUser, type Credentials, credentialsOf } from "./credentials.ts";
import type { Guard } from "./guard.ts";
import { launch, type LaunchSettings, monitorUrl } from "./launch.ts";
import type { Ports } from "./ports.ts";
import type { ServerProcess } from "./server-process.ts";

const portPatienceMs = 30_000;
const portPauseMs = 100;

/** A broker that this process runs. The methods that end or start it are to be called one after the other. */
export class RunningBroker implements Broker {
  readonly url: string;
  readonly wsUrl: string;
  readonly monitorUrl: string;
  readonly ports: Ports;
  /** Where the streams and the server's log rest. */
  readonly storeDir: string;
  /** What the server prints. */
  readonly logFile: string;

  readonly #settings: LaunchSettings;
  readonly #guard: Guard | undefined;
  readonly #isTemporary: boolean;
  #server: ServerProcess;

  constructor(parts: {
    readonly settings: LaunchSettings;
    readonly server: ServerProcess;
    readonly guard: Guard | undefined;
    readonly isTemporary: boolean;
  }) {
    const { settings, server, guard, isTemporary } = parts;
    this.url = `nats://127.0.0.1:${settings.ports.client}`;
    this.wsUrl = `ws://127.0.0.1:${settings.ports.websocket}`;
    this.monitorUrl = monitorUrl(settings.ports);
    this.ports = settings.ports;
    this.storeDir = settings.storeDir;
    this.logFile = settings.logFile;
    this.#settings = settings;
    this.#guard = guard;
    this.#isTemporary = isTemporary;
    this.#server = server;
  }

  /** Of the present life, or of the last. */
  get pid(): number {
    return this.#server.pid;
  }

  /** Settles when the present life ends, for whatever reason. */
  get exited(): Promise<void> {
    return this.#server.exited;
  }

  credentialsOf(user: BrokerUser): Credentials {
    return credentialsOf(user, this.#settings.passwords[user]);
  }

  /** Ends it with SIGKILL, as a crash would, and waits until it is gone. The store stays. */
  async kill(): Promise<void> {
    await this.#server.end("SIGKILL");
  }

  /**
   * Starts it again on the same ports and the same store; ends it in order before, where it still runs.
   *
   * @throws HoldpointError `unavailable` where it does not start, or another process has taken a port meanwhile
   */
  async restart(): Promise<void> {
    await this.#server.end("SIGTERM");
    const patience = AbortSignal.timeout(portPatienceMs);
    for (;;) {
      const server = await launch(this.#settings, this.#guard);
      if (server !== "port_taken") {
        this.#server = server;
        return;
      }
      if (patience.aborted) throw new HoldpointError("unavailable", `another process has taken a port of ${this.url}`);
      await pause(portPauseMs);
    }
  }

  /** Ends it in order, and removes a temporary store. Harmless when repeated. */
  async stop(): Promise<void> {
    await this.#server.end("SIGTERM");
    this.#guard?.release();
    if (this.#isTemporary) await rm(this.storeDir, { recursive: true, force: true });
  }
}
