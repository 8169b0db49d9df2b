import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Where a broker listens, on loopback. */
export interface Ports {
  readonly client: number;
  readonly websocket: number;
  readonly monitor: number;
}

/**
 * Below the ports that systems give to outgoing connections (from 32768 on Linux, 49152 elsewhere): while a broker is down no
 * client that tries to reconnect can be given the broker's own port, and so talk to itself.
 */
const [lowest, above] = [10_240, 32_768];

/** Free ports in place of those not `given`. Free now: whoever is faster has them, so that a start has to be tried again. */
export async function choosePorts(given: Partial<Ports> = {}): Promise<Ports> {
  const taken = new Set(Object.values(given));
  return {
    client: given.client ?? (await freePort(taken)),
    websocket: given.websocket ?? (await freePort(taken)),
    monitor: given.monitor ?? (await freePort(taken)),
  };
}

/** A free port that is not among `taken`, to which it is added. */
async function freePort(taken: Set<number>): Promise<number> {
  for (;;) {
    const port = randomInt(lowest, above);
    if (taken.has(port) || !(await isFree(port))) continue;
    taken.add(port);
    return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
