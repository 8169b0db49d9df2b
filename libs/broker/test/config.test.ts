import { brokerUsers, findServer, startBroker } from "@holdpoint/broker";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const config = fileURLToPath(new URL("../../../nats.conf", import.meta.url));
const text = readFileSync(config, "utf8");
const passwordVariables = brokerUsers.map((user) => `HOLDPOINT_${user.toUpperCase()}_PASSWORD`);
const environment: Record<string, string> = {
  HOLDPOINT_NATS_LISTEN: "127.0.0.1:4222",
  HOLDPOINT_WEBSOCKET_LISTEN: "127.0.0.1:4280",
  HOLDPOINT_MONITOR_LISTEN: "127.0.0.1:8222",
  HOLDPOINT_STORE_DIR: "/var/lib/holdpoint",
  ...Object.fromEntries(passwordVariables.map((name) => [name, '"0123456789"'])),
};

let server: string;
beforeAll(async () => {
  // Also where none is installed yet: starting a broker provides one.
  await (await startBroker()).stop();
  server = (await findServer()).path;
});

test("nats.conf is valid with the variables that it names, and they alone", async () => {
  const { stderr } = await run(server, ["-t", "--config", config], { env: environment });
  expect(stderr).toContain("is valid");
  const read = [...text.matchAll(/\$(HOLDPOINT_[A-Z_]+)/g)].map(([, name]) => name);
  expect(new Set(read)).toEqual(new Set(Object.keys(environment)));
});

test.each(Object.keys(environment))("nats.conf without %s is refused, not run with a default", async (name) => {
  const { [name]: _, ...rest } = environment;
  await expect(run(server, ["-t", "--config", config], { env: rest })).rejects.toThrow(name);
});
