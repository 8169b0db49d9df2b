import { MemoryLog } from "@holdpoint/eventsourcing";
import { eventLogContract } from "@holdpoint/testing";

// The log in memory; the suite is what is under test as well.
eventLogContract(async () => {
  const log = new MemoryLog();
  return { log, environmentLog: log, run: "demo" };
});
