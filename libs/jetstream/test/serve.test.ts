import { provideCli } from "@holdpoint/broker";
import { HoldpointError } from "@holdpoint/errors";
import { type Connection, openLog, serve } from "@holdpoint/jetstream";
import { startTestBroker } from "@holdpoint/testing";
import { headers } from "nats";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, expect, test, vi } from "vitest";
import { internals } from "../src/connection.ts";

const broker = await startTestBroker();
const coordinator = await broker.connectAs("coordinator");
const operator = await broker.connectAs("operator");
afterAll(() => broker.stop());

const decoder = new TextDecoder();

async function ask(subject: string, body: string, connection: Connection = operator): Promise<string> {
  return decoder.decode(await connection.request(subject, body, { timeoutMs: 20_000 }));
}

function endpoint(subject: string, handler: (body: string) => Promise<string>) {
  const name = subject.split(".").at(-1) ?? "";
  return {
    name,
    subject,
    metadata: { schema: "status" },
    handler: (body: Uint8Array) => handler(decoder.decode(body)),
  };
}

const service = { name: "holdpoint", version: "1.2.3", description: "control of a run" };

test("a service answers its endpoints, many requests at once", async () => {
  const waiting: (() => void)[] = [];
  const slow = endpoint("hp.r0.ctl.prepare", (body) => new Promise((resolve) => waiting.push(() => resolve(body))));
  const running = await serve(coordinator, { ...service, endpoints: [slow] });
  const asked = ["a", "b", "c"].map((body) => ask("hp.r0.ctl.prepare", body));
  await vi.waitFor(() => expect(waiting).toHaveLength(3), { timeout: 20_000 });
  for (const answer of waiting.toReversed()) answer();
  expect(await Promise.all(asked)).toEqual(["a", "b", "c"]);
  await running.stop();
  expect(await running.stopped).toBeUndefined();
});

test("an endpoint is told of the span of whoever asks, however the header is written", async () => {
  const seen: (string | undefined)[] = [];
  const traced = {
    name: "renew",
    subject: "hp.r4.ctl.renew",
    handler: async (_body: Uint8Array, traceparent?: string) => String(seen.push(traceparent)),
  };
  const running = await serve(coordinator, { ...service, endpoints: [traced] });
  const { nats } = internals(operator);
  for (const name of ["traceparent", "Traceparent", "other"]) {
    const all = headers();
    all.set(name, "00-a-b-01");
    await nats.request("hp.r4.ctl.renew", "", { headers: all, timeout: 20_000 });
  }
  await ask("hp.r4.ctl.renew", "");
  expect(seen).toEqual(["00-a-b-01", "00-a-b-01", undefined, undefined]);
  await running.stop();
});

test("an endpoint that refuses answers with the headers of a service's error, and the problem as its body", async () => {
  const refusing = endpoint("hp.r1.ctl.commit", async (body) => {
    if (body === "bug") throw new TypeError("of ours");
    throw new HoldpointError("invalid_request", "checkpointId:\nexpected a text", { details: { body } });
  });
  const running = await serve(coordinator, { ...service, endpoints: [refusing] });
  const { nats } = internals(operator);
  const refused = await nats.request("hp.r1.ctl.commit", "x", { timeout: 20_000 });
  expect(refused.headers?.get("Nats-Service-Error")).toBe("invalid_request: checkpointId: expected a text");
  expect(refused.headers?.get("Nats-Service-Error-Code")).toBe("400");
  expect(refused.json()).toEqual({
    code: "invalid_request",
    message: "checkpointId:\nexpected a text",
    details: { body: "x" },
  });
  const statuses: unknown[] = [];
  coordinator.onStatus((status) => statuses.push(status));
  const failed = await nats.request("hp.r1.ctl.commit", "bug", { timeout: 20_000 });
  expect(failed.headers?.get("Nats-Service-Error-Code")).toBe("503");
  expect(failed.string()).not.toContain("of ours");
  expect(statuses).toEqual([{ type: "fault", error: new TypeError("of ours") }]);
  await running.stop();
});

const cli = await provideCli();
const run = promisify(execFile);

test.skipIf(cli === undefined)(
  "the nats command line lists the service, its endpoints and its counts, and can ask it",
  async () => {
    const status = endpoint("hp.r5.ctl.status", async (body) => {
      if (body === "wrong") throw new HoldpointError("not_found", "no such thing");
      return `fine: ${body}`;
    });
    const running = await serve(coordinator, { ...service, endpoints: [status] });
    const { user, password } = broker.server.credentialsOf("operator");
    const nats = async (...command: string[]) => {
      const { stdout } = await run(cli ?? "", [
        "--server",
        broker.server.url,
        "--user",
        user,
        "--password",
        password,
        ...command,
      ]);
      return stdout;
    };
    expect(await nats("request", "--raw", "hp.r5.ctl.status", "you")).toContain("fine: you");
    await nats("request", "--raw", "hp.r5.ctl.status", "wrong").catch(() => ""); // it may end with a code of its own
    expect(await nats("micro", "ls")).toContain("control of a run");
    const info = await nats("micro", "info", "holdpoint");
    for (const word of ["hp.r5.ctl.status", "1.2.3", "schema"]) expect(info).toContain(word);
    const stats = await nats("micro", "stats", "holdpoint", "--json");
    expect(stats).toContain('"num_requests": 2');
    expect(stats).toMatch(/"answered":\s*1,\s*"refused":\s*1,\s*"lastError":\s*"no such thing"/);
    await running.stop();
  },
);

test("a service answers again after the server was killed", async () => {
  const running = await serve(coordinator, {
    ...service,
    endpoints: [endpoint("hp.r2.ctl.status", async () => "fine")],
  });
  await broker.server.kill();
  await broker.server.restart();
  await vi.waitFor(async () => expect(await ask("hp.r2.ctl.status", "")).toBe("fine"), { timeout: 30_000 });
  await running.stop();
});

test("requests to nobody, of the unallowed and to many fail with their codes", async () => {
  await expect(ask("hp.r3.ctl.status", "")).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("nobody listens"),
  });
  await expect(ask("hp.r3.control", "")).rejects.toMatchObject({ code: "unauthorized" });
  await expect(ask("hp.r3.ctl.*", "")).rejects.toMatchObject({ code: "invalid_request" });
});

test("a service on a subject that its user may not listen to ends with an error", async () => {
  const running = await serve(operator, { ...service, endpoints: [endpoint("hp.r4.rpc.x", async () => "")] });
  expect(await running.stopped).toBeInstanceOf(Error);
});

test("a version that is none is refused", async () => {
  await expect(serve(coordinator, { ...service, version: "new", endpoints: [] })).rejects.toThrow("serving holdpoint");
});

test("an answer goes to an inbox alone: nobody makes us write where they may not", async () => {
  const name = await broker.newRun();
  const [model, agent] = [await broker.connectAs("model"), await broker.connectAs("agent")];
  const handled: string[] = [];
  const status = endpoint(`hp.${name}.ctl.status`, async (body) => `${handled.push(body)}`);
  const running = await serve(coordinator, { ...service, endpoints: [status] });
  const close = `hp.${name}.rpc.r.0.model.close`;
  const listening = await model.subscribe(close, ({ respond }) => respond(`${handled.push("close")}`));

  internals(operator).nats.publish(`hp.${name}.ctl.status`, "forged", { reply: `hp.${name}.control` });
  await ask(`hp.${name}.ctl.status`, "asked");
  internals(agent).nats.publish(close, "", { reply: `hp.${name}.log.model.main.0` });
  await ask(close, "", agent);

  expect(handled).toEqual(["forged", "asked", "close", "close"]);
  expect(await openLog(coordinator, name).lastSequence()).toBe(0);
  listening.stop();
  await running.stop();
});
