/** The MCP edge over HTTP, with a client of the protocol's own library, on a real broker. */
import { openLog } from "@holdpoint/jetstream";
import { startTestBroker, type TestBroker } from "@holdpoint/testing";
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { counterWith, Door, type Parts } from "./resources-counter.ts";
import { mcpClient, mcpTool } from "./resources-mcp-client.ts";
import { episodeOf, patience, ResourcesRoom } from "./resources-room.ts";

const episode = episodeOf("r");
const grants = { ttlMs: 1_000_000 };

let broker: TestBroker;
beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());

/** A server in this process, on the broker, with one session and one client. */
async function served(parts: Parts = {}) {
  const run = await broker.newRun();
  const log = openLog(await broker.connectAs("coordinator"), run);
  const server = await broker.connectAs("resources");
  const asking = await broker.connectAs("environment");
  const room = new ResourcesRoom({ run, log, asking, server });
  const serving = await room.serve(counterWith({ grants, ...parts }));
  const access = await room.granted(episode);
  const client = await mcpClient(access);
  return { room, serving, access, client, base: new URL(access.mcpUrl ?? "") };
}

function post(url: URL, headers: Record<string, string>, body: object = {}): Promise<Response> {
  const accept = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  return fetch(url, { method: "POST", headers: { ...accept, ...headers }, body: JSON.stringify(body) });
}

/** Returns once so many clients wait for an answer: what they asked has arrived, or is over. */
async function waiting(base: URL, count: number): Promise<void> {
  await vi.waitFor(async () => {
    const health: unknown = await (await fetch(new URL("/health", base))).json();
    expect(health).toEqual({ status: "serving", waiting: count });
  }, patience);
}

describe("over MCP", () => {
  test("tools are listed with what they take, and called", async () => {
    const { client, serving, room } = await served();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["add", "once"]);
    expect(tools[0]?.inputSchema).toMatchObject({ type: "object", properties: { by: { type: "integer" } } });
    expect(await mcpTool(client, "add", { by: 2 })).toBe("2");
    expect(await room.tool(episode, "0/0", "add", { by: 1 })).toBe("3"); // of the same session
    await client.close();
    await serving.stop();
  });

  test("calls are numbered as they come: the same again is another one", async () => {
    const { client, serving, room } = await served();
    await mcpTool(client, "add", { by: 2 });
    expect(await mcpTool(client, "add", { by: 2 })).toBe("4");
    expect(await room.events("tool.started")).toMatchObject([
      { caller: "mcp", turn: 0, index: 0 },
      { caller: "mcp", turn: 1, index: 0 },
    ]);
    await room.capture("c1", [episode]);
    expect(await room.events("session.captured")).toMatchObject([{ edges: { tools: { received: 0 } } }]);
    await client.close();
    await serving.stop();
  });

  test("[L3] a call that its client names is done once, also for the next process", async () => {
    const { client, serving, room, base } = await served();
    expect(await mcpTool(client, "add", { by: 2 }, "call-1")).toBe("2");
    expect(await mcpTool(client, "add", { by: 2 }, "call-1")).toBe("2");
    expect(await mcpTool(client, "add", { by: 1 }, "0")).toBe("3"); // no number of another call
    await expect(mcpTool(client, "add", { by: 9 }, "call-1")).rejects.toMatchObject({
      data: { code: "session_conflict", retry: false },
    });
    await expect(mcpTool(client, "add", { by: 9 }, "no name")).rejects.toMatchObject({ code: -32602 });
    await serving.stop();
    const next = await room.serve(counterWith({ grants }), { mcp: { port: Number(base.port) } });
    expect(await mcpTool(client, "add", { by: 2 }, "call-1")).toBe("2"); // the same client, with nothing begun anew
    expect(await mcpTool(client, "add", { by: 2 })).toBe("5");
    await client.close();
    await next.stop();
  });

  test("[A3] what is wrong with a call is its result; what refuses it is an error of the protocol", async () => {
    const broken = vi.fn<() => Promise<never>>().mockRejectedValue(new Error("broken"));
    const { client, serving, room } = await served({ once: broken });
    expect(await client.callTool({ name: "add", arguments: { by: "two" } })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("wrong arguments") }],
    });
    await expect(client.callTool({ name: "subtract", arguments: {} })).rejects.toMatchObject({ code: -32602 });
    await expect(client.callTool({ name: "once", arguments: {} })).rejects.toMatchObject({
      code: -32050,
      data: { code: "invalid_checkpoint_state" },
    });
    expect(await room.events("session.restart_marked")).toHaveLength(1);
    await client.close();
    await serving.stop();
  });

  test("[A3] a call that is held while its attempt is retired is refused as stale_attempt", async () => {
    const { client, serving, room, base } = await served();
    await room.asked("prepare", { checkpointId: "c1" });
    const held = mcpTool(client, "add", { by: 1 }).catch((error: unknown) => error);
    await waiting(base, 1);
    await room.mark(episode);
    await room.resume("c1");
    expect(await held).toMatchObject({ code: -32050, data: { code: "stale_attempt" } });
    expect(await room.events("tool.started")).toEqual([]);
    await client.close();
    await serving.stop();
  });

  test("a call that runs when the server is told to stop is answered; one that is held is told to come back", async () => {
    const door = new Door();
    const { client, serving, access, room, base } = await served({ adding: () => door.pass() });
    const running = mcpTool(client, "add", { by: 2 });
    await door.reached;
    await room.asked("prepare", { checkpointId: "c1", remainingMs: 0 }); // it stays closed
    const other = await mcpClient(access);
    const held = mcpTool(other, "add", { by: 5 }).catch((error: unknown) => error);
    await waiting(base, 2);
    const stopped = serving.stop();
    expect(await held).toMatchObject({ data: { code: "unavailable", retry: true } });
    door.open();
    expect(await running).toBe("2");
    await stopped;
    await Promise.all([client.close(), other.close()]);
  });

  test("a call runs to its end, and counts, though its client has gone; one that had not begun does not", async () => {
    const door = new Door();
    const { client, serving, room, access, base } = await served({ adding: () => door.pass() });
    const other = await mcpClient(access);
    const running = mcpTool(client, "add", { by: 2 }).catch(() => "gone");
    await door.reached;
    const queued = mcpTool(other, "add", { by: 5 }).catch(() => "gone");
    await waiting(base, 2);
    await Promise.all([client.close(), other.close()]);
    expect(await Promise.all([running, queued])).toEqual(["gone", "gone"]);
    await waiting(base, 0);
    door.open();
    expect(await room.tool(episode, "0/0", "add", { by: 1 })).toBe("3");
    await serving.stop();
  });
});

describe("[A14] while admission is closed", () => {
  test("health, initialize, ping and the list of tools go through; a call is held, is not in flight, and then runs", async () => {
    const { client, serving, room, access, base } = await served();
    const prepared = await room.asked("prepare", { checkpointId: "c1" });
    expect(prepared).toMatchObject({ blockerCount: 0 });
    const held = mcpTool(client, "add", { by: 2 });
    const other = await mcpClient(access);
    await other.ping();
    expect((await other.listTools()).tools).toHaveLength(2);
    await waiting(base, 1);
    const { asked, command } = await room.ask("capture", { checkpointId: "c1", scope: [episode] });
    expect(await room.answerTo(asked)).toMatchObject({ sessions: 1 }); // nothing blocks it
    await room.cut("c1", [episode], command);
    expect(await room.events("tool.started")).toEqual([]);
    await room.resume("c1");
    expect(await held).toBe("2");
    await Promise.all([client.close(), other.close()]);
    await serving.stop();
  });

  test("a call in flight blocks until its result is in the log", async () => {
    const door = new Door();
    const { client, serving, room } = await served({ adding: () => door.pass() });
    const call = mcpTool(client, "add", { by: 2 });
    await door.reached;
    expect(await room.asked("prepare", { checkpointId: "c1", remainingMs: 0 })).toMatchObject({
      blockers: [{ ...episode, reason: "tool call in flight" }],
    });
    door.open();
    expect(await call).toBe("2");
    expect(await room.asked("prepare", { checkpointId: "c1" })).toMatchObject({ blockerCount: 0 });
    await room.resume("c1");
    await client.close();
    await serving.stop();
  });
});

describe("[A14] a caller is known by its token alone", () => {
  test("no token and a wrong one are unauthorized, as HTTP says it, whatever the method", async () => {
    const { client, serving, base, access } = await served();
    const missing = await post(base, {});
    expect([missing.status, missing.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    const wrong = await post(base, { authorization: "Bearer nonsense" });
    expect([wrong.status, wrong.headers.get("www-authenticate")]).toEqual([401, 'Bearer error="invalid_token"']);
    expect((await post(base, { authorization: `Basic ${access.token}` })).status).toBe(401);
    expect((await fetch(base)).status).toBe(401);
    const authorization = `Bearer ${access.token}`;
    const stream = await fetch(base, { headers: { authorization } });
    expect([stream.status, stream.headers.get("allow")]).toEqual([405, "POST"]);
    expect((await fetch(new URL("/", base))).status).toBe(404);
    await expect(mcpClient({ ...access, token: "nonsense" })).rejects.toBeInstanceOf(StreamableHTTPError);
    await client.close();
    await serving.stop();
  });

  test("a grant asked anew opens the same session, beside the one before, until each expires", async () => {
    const { ttlMs } = grants;
    const startMs = Date.now();
    let nowMs = startMs;
    const run = await broker.newRun();
    const log = openLog(await broker.connectAs("coordinator"), run);
    const room = new ResourcesRoom({
      run,
      log,
      asking: await broker.connectAs("environment"),
      server: await broker.connectAs("resources"),
    });
    const serving = await room.serve(counterWith({ grants }), { nowMs: () => nowMs });
    const access = await room.granted(episode);
    expect(access.expiresAtMs).toBe(startMs + ttlMs);
    nowMs = startMs + ttlMs / 2;
    const later = await room.grant(episode);
    const [first, second] = [await mcpClient(access), await mcpClient(later)];
    expect(await mcpTool(first, "add", { by: 1 })).toBe("1");
    expect(await mcpTool(second, "add", { by: 1 })).toBe("2");
    nowMs = startMs + ttlMs;
    await expect(mcpTool(first, "add", { by: 1 })).rejects.toMatchObject({ code: 401 });
    expect(await mcpTool(second, "add", { by: 1 })).toBe("3");
    nowMs = startMs + 1.5 * ttlMs;
    await expect(mcpTool(second, "add", { by: 1 })).rejects.toMatchObject({ code: 401 });
    await expect(room.grant(episodeOf("nobody"))).rejects.toMatchObject({ code: "not_found" });
    await Promise.all([first.close(), second.close()]);
    await serving.stop();
  });

  test("a token opens its own session and no other; one whose session is closed opens nothing", async () => {
    const { client, serving, room } = await served();
    const other = await mcpClient(await room.granted(episodeOf("other")));
    await mcpTool(client, "add", { by: 2 });
    expect(await mcpTool(other, "add", { by: 5 })).toBe("5");
    await room.rpc(episodeOf("other"), "close");
    await expect(mcpTool(other, "add", { by: 1 })).rejects.toMatchObject({ code: 401 });
    expect(await mcpTool(client, "add", { by: 1 })).toBe("3");
    await Promise.all([client.close(), other.close()]);
    await serving.stop();
  });
});

test("an address that is taken is refused when the server starts, by name", async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => {
    taken.listen(0, "127.0.0.1", resolve);
  });
  const { port } = z.object({ port: z.number() }).parse(taken.address());
  const room = new ResourcesRoom();
  await expect(room.serve(counterWith({ grants }), { mcp: { port } })).rejects.toMatchObject({
    code: "invalid_request",
    message: `counter cannot serve MCP on 127.0.0.1:${port}: name another address`,
  });
  taken.close();
});
