/** The example of the docs, as a process that is killed. */
import { openLog } from "@holdpoint/jetstream";
import { startTestBroker, type TestBroker } from "@holdpoint/testing";
import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { mcpClient, mcpTool } from "./resources-mcp-client.ts";
import { episodeOf, patience, ResourcesRoom } from "./resources-room.ts";

const program = fileURLToPath(new URL("../../../docs/examples/counter-resources.ts", import.meta.url));
const episode = episodeOf("r");

let broker: TestBroker;
const children: ChildProcess[] = [];
beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** A run whose resources server is a process of its own. */
class ProcessRun {
  readonly room: ResourcesRoom;
  readonly #port: number;
  /** What all its processes have said. */
  output = "";

  private constructor(room: ResourcesRoom, port: number) {
    this.room = room;
    this.#port = port;
  }

  static async open(): Promise<ProcessRun> {
    const run = await broker.newRun();
    const log = openLog(await broker.connectAs("coordinator"), run);
    const room = new ResourcesRoom({ run, log, asking: await broker.connectAs("environment") });
    return new ProcessRun(room, await freePort());
  }

  /** Starts it; returns once it serves. */
  async start(): Promise<{ kill(signal: NodeJS.Signals): Promise<number | null> }> {
    const { user, password } = broker.server.credentialsOf("resources");
    const settings = { NATS_URL: broker.server.url, NATS_USER: user, NATS_PASSWORD: password, LOG_LEVEL: "debug" };
    const env = { ...settings, HOLDPOINT_RUN: this.room.run, HOLDPOINT_MCP: `${this.#port}` };
    const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] });
    children.push(child);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    void ended.then(() => (this.output += said));
    await vi.waitFor(() => {
      if (child.exitCode !== null) throw new Error(`ended: ${said}`);
      if (!said.includes("resources serves")) throw new Error(`does not serve yet: ${said}`);
    }, patience);
    const line = said.split("\n").find((text) => text.includes("resources serves")) ?? "";
    await this.room.join(z.object({ incarnation: z.string() }).parse(JSON.parse(line)).incarnation);
    return {
      kill: (signal) => {
        child.kill(signal);
        return ended;
      },
    };
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = z.object({ port: z.number() }).parse(server.address());
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}

describe("the counter of the docs", () => {
  test("[L3] [L9] killed in the middle of a call goes on in place: every call has happened once", async () => {
    const run = await ProcessRun.open();
    const { room } = run;
    let server = await run.start();
    await room.seed(episode, { target: 0 });
    let turns = 0;
    let hits = 0;
    for (let kills = 0; hits === 0 && kills < 20; kills += 1) {
      const first = turns;
      turns += 30;
      const calls = Array.from({ length: 30 }, (_, at) => room.tool(episode, `${first + at}/0`, "add", { by: 1 }));
      const answers = Promise.allSettled(calls);
      await vi.waitFor(
        async () => expect((await room.events("tool.started")).length).toBeGreaterThan(first + 5),
        patience,
      );
      await server.kill("SIGKILL");
      const [started, finished] = [await room.events("tool.started"), await room.events("tool.finished")];
      if (started.length > finished.length) hits += 1;
      server = await run.start();
      for (let turn = first; turn < turns; turn += 1) {
        expect(await room.tool(episode, `${turn}/0`, "add", { by: 1 })).toBe(`the counter is ${turn + 1}`);
      }
      void answers;
    }
    expect(hits).toBe(1); // a call was under way when the process was killed
    expect(await room.events("tool.finished")).toHaveLength(turns);
    expect(await room.verify(episode)).toEqual({ reward: 0, count: turns });
    expect(await server.kill("SIGTERM")).toBe(0);
  });

  test("[S2] [F10] serves MCP to a client of the process before it, and writes no token anywhere", async () => {
    const run = await ProcessRun.open();
    const { room } = run;
    const first = await run.start();
    const access = await room.granted(episode);
    const client = await mcpClient(access);
    expect(await mcpTool(client, "add", { by: 2 })).toBe("the counter is 2");
    await first.kill("SIGKILL");
    const second = await run.start();
    expect(await mcpTool(client, "add", { by: 0 })).toBe("the counter is 2"); // nothing was begun anew
    const cut = await room.checkpoint("c1", [episode]);
    await room.retire(episode);
    await room.restore("r1", "c1", cut, [episode]);
    await expect(mcpTool(client, "add", { by: 1 })).rejects.toMatchObject({ code: 401 });
    const fresh = await room.granted(episodeOf("r", 1));
    const another = await room.grant(episodeOf("r", 1));
    const again = await mcpClient(another);
    expect(await mcpTool(again, "add", { by: 1 })).toBe("the counter is 3");
    await expect(room.rpc(episodeOf("r", 1), "grant", { token: fresh.token })).rejects.toMatchObject({
      code: "invalid_request",
    });
    await room.rpc(episodeOf("r", 1), "close");
    await Promise.all([client.close(), again.close()]);
    expect(await second.kill("SIGTERM")).toBe(0);

    const written = (await room.text()) + run.output;
    expect(written).toContain("grant.issued");
    expect(run.output).toContain("resources serves");
    for (const { token } of [access, fresh, another]) {
      expect(written).not.toContain(token);
      expect(written).not.toContain(token.slice(0, 12));
    }
  });

  test("a wrong setting ends it with code 2, by name", async () => {
    const env = { HOLDPOINT_MCP: "somewhere", HOLDPOINT_RUN: "no such run" };
    const child = spawn(process.execPath, [program], { env, stdio: ["ignore", "ignore", "pipe"] });
    children.push(child);
    let said = "";
    child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    expect(await new Promise((resolve) => child.once("close", resolve))).toBe(2);
    expect(said).toContain("HOLDPOINT_MCP");
    expect(said).toContain("HOLDPOINT_RUN");
  });
});
