/** Requests between users: the answer reaches the one that asked, also over a restart. */
import { brokerEnvironment, provideCli, type RunningBroker, startBroker } from "@holdpoint/broker";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Msg } from "nats";
import { afterAll, beforeAll, expect, test } from "vitest";
import { api, connectAs, makeStream, reconnected } from "./client.ts";

const run = promisify(execFile);
/** Built only where it is missing, and only where Go is. */
const cli = await provideCli();

let broker: RunningBroker;
beforeAll(async () => {
  broker = await startBroker();
  await makeStream(broker);
});
afterAll(() => broker.stop());

test("a role that is asked answers into the inbox of the one that asked", async () => {
  const [environment, agent] = await Promise.all([connectAs(broker, "environment"), connectAs(broker, "agent")]);
  agent.subscribe("hp.d.rpc.*.*.agent.*", { callback: (_, message) => void message.respond("done") });
  await agent.flush();
  const answer = await environment.request("hp.d.rpc.r-1.0.agent.activate", "", { timeout: 10_000 });
  expect(answer.string()).toBe("done");
  await Promise.all([environment.close(), agent.close()]);
});

test("an answer that is given after the broker was killed and restarted still arrives", async () => {
  const [environment, model] = await Promise.all([connectAs(broker, "environment"), connectAs(broker, "model")]);
  const asked = new Promise<Msg>((resolve) => {
    model.subscribe("hp.d.rpc.*.*.model.*", { callback: (_, message) => resolve(message) });
  });
  await model.flush();
  const pending = environment.request("hp.d.rpc.r-1.0.model.complete", "", { timeout: 60_000 });
  const question = await asked;
  await broker.kill();
  await broker.restart();
  await Promise.all([reconnected(environment), reconnected(model)]);
  question.respond("held");
  expect((await pending).string()).toBe("held");
  await Promise.all([environment.close(), model.close()]);
});

test("[L1] the environment cannot append to the log of an agent, and the stream shows nothing of the attempt", async () => {
  const environment = await connectAs(broker, "environment");
  const own = await environment.request("hp.d.log.environment.e.0", "mine", { timeout: 10_000 });
  expect(own.json()).toMatchObject({ stream: "HP_d" });
  await expect(environment.request("hp.d.log.agent.a.0", "forged", { timeout: 10_000 })).rejects.toThrow(
    /permissions violation/i,
  );
  const found = await api(environment, "STREAM.MSG.GET.HP_d", { last_by_subj: "hp.d.log.agent.a.0" });
  expect(found).toMatchObject({ error: { code: 404 } });
  await environment.close();
});

test.skipIf(cli === undefined)("the nats command line asks and commands as operator without any option", async () => {
  const coordinator = await connectAs(broker, "coordinator");
  coordinator.subscribe("hp.d.ctl.status", { callback: (_, message) => void message.respond('{"phase":"idle"}') });
  await coordinator.flush();
  const env = { ...process.env, ...brokerEnvironment(broker, "operator") };
  const nats = async (...args: string[]) => (await run(cli ?? "", args, { env })).stdout;
  expect(await nats("req", "--raw", "hp.d.ctl.status", "{}")).toContain('{"phase":"idle"}');
  expect(await nats("req", "--raw", "hp.d.cmd.prepare", '{"checkpointId":"c1"}')).toContain('"stream":"HP_d"');
  expect(await nats("stream", "get", "HP_d", "-S", "hp.d.cmd.prepare")).toContain('{"checkpointId":"c1"}');
  await coordinator.close();
});
