import { type Broker, brokerEnvironment, startBroker, useBroker } from "@holdpoint/broker";
import { expect, test } from "vitest";
import { connectAs } from "./client.ts";

test("without NATS_URL there is no broker to use", () => {
  expect(useBroker({})).toBeUndefined();
  expect(useBroker({ NATS_URL: "" })).toBeUndefined();
});

test("a process finds a broker again by the environment that its parent made for it", async () => {
  const broker = await startBroker();
  const env = brokerEnvironment(broker, "agent");
  const found: Broker | undefined = useBroker(env);
  if (found === undefined) throw new Error("not found");
  expect(found).toMatchObject({ url: broker.url, wsUrl: broker.wsUrl, monitorUrl: broker.monitorUrl });
  expect(found.credentialsOf("agent")).toEqual(broker.credentialsOf("agent"));
  const agent = await connectAs(found, "agent");
  await agent.flush();
  await agent.close();
  await broker.stop();
});

test("credentials are taken out of the URL, and the variables go before them", () => {
  const inUrl = useBroker({ NATS_URL: "nats://ann:s%40cret@broker.example:4222" });
  expect(inUrl?.url).toBe("nats://broker.example:4222");
  expect(inUrl?.credentialsOf("model")).toEqual({ user: "ann", password: "s@cret", inboxPrefix: "_INBOX_ann" });
  const named = useBroker({ NATS_URL: "tls://ann:x@broker.example", NATS_USER: "bob", NATS_PASSWORD: "y" });
  expect(named?.credentialsOf("model")).toMatchObject({ user: "bob", password: "y" });
});

test("without credentials of its own a user takes those of nats.conf, or none", () => {
  const broker = useBroker({ NATS_URL: "nats://127.0.0.1:4222", HOLDPOINT_AGENT_PASSWORD: "abcdefgh" });
  expect(broker?.credentialsOf("agent")).toEqual({ user: "agent", password: "abcdefgh", inboxPrefix: "_INBOX_agent" });
  expect(broker?.credentialsOf("model")).toBeUndefined();
});

test.each([
  [{ NATS_URL: "127.0.0.1:4222" }, /NATS_URL/],
  [{ NATS_URL: "http://127.0.0.1:4222" }, /NATS_URL/],
  [{ NATS_URL: "nats://ann:50%@a:4222" }, /%25/],
  [{ NATS_URL: "nats://a:4222,nats://b:4222" }, /NATS_URL/],
  [{ NATS_URL: "nats://a:4222", NATS_USER: "ann" }, /without a password: set both/],
  [{ NATS_URL: "nats://ann:x@a:4222", NATS_PASSWORD: "y" }, /without a user: set both/],
  [{ NATS_URL: "nats://a:4222", NATS_MONITOR_URL: "a:8222" }, /NATS_MONITOR_URL/],
])("%j is refused, by the name of the variable", (env, reason) => {
  expect(() => useBroker(env)).toThrow(
    expect.objectContaining({ code: "invalid_request", message: expect.stringMatching(reason) }),
  );
});
