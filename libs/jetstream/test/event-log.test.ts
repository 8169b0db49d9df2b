import { openLog } from "@holdpoint/jetstream";
import { eventLogContract, startTestBroker } from "@holdpoint/testing";
import { afterAll } from "vitest";

const broker = await startTestBroker();
const coordinator = await broker.connectAs("coordinator");
const environment = await broker.connectAs("environment");
afterAll(() => broker.stop());

eventLogContract(async () => {
  const run = await broker.newRun();
  return { log: openLog(coordinator, run), environmentLog: openLog(environment, run), run };
});
