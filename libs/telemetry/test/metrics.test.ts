import { MemoryLog } from "@holdpoint/eventsourcing";
import { measuredLog, serveMetrics } from "@holdpoint/telemetry";
import { expect, test } from "vitest";

const source = { run: "demo", service: "holdpoint-test", incarnation: "test-1" };
const address = { host: "127.0.0.1", port: 0 };
const subject = "hp.demo.control";

function draft(sequence: number, at = subject) {
  return { subject: at, body: "{}", messageId: `m${sequence}.${at}`, expected: { subject: at, sequence } };
}

async function scraped(url: string): Promise<readonly string[]> {
  return (await (await fetch(url)).text()).split("\n");
}

test("appends are measured by how they ended, and the log stays what it is", async () => {
  const sink = await serveMetrics(address, source);
  const log = measuredLog(new MemoryLog("HP_demo"), sink);
  expect(await log.append(draft(0))).toEqual({ stored: true, sequence: 1 });
  expect(await log.append({ ...draft(0), messageId: "other" })).toEqual({ stored: false });
  await expect(log.appendBatch([])).rejects.toThrow("batch");
  const lines = await scraped(sink.url);
  for (const result of ["stored", "refused", "failed"]) {
    expect(lines).toContain(`holdpoint_append_seconds_count{result="${result}",run="demo",service="holdpoint-test"} 1`);
  }
});

/** A log of which the latest messages are not delivered yet. */
class Growing extends MemoryLog {
  undelivered = 0;

  override async lastSequence(): Promise<number> {
    return (await super.lastSequence()) + this.undelivered;
  }
}

test("the lag is how far the slowest of those that follow is behind, and nobody has one who has ended", async () => {
  const sink = await serveMetrics(address, source);
  const plain = new Growing("HP_demo");
  const log = measuredLog(plain, sink);
  const lag = async () =>
    (await scraped(sink.url)).find((line) => line.startsWith("holdpoint_log_lag{"))?.split(" ")[1];
  expect(await lag()).toBeUndefined();
  for (let sequence = 0; sequence < 3; sequence++) await plain.append(draft(sequence));
  const ofSubject = await log.tail({ from: 1, subjects: [subject] }, () => {});
  const ofMany = await log.tail({ from: 1, subjects: ["hp.demo.log.>"] }, () => {});
  expect(await lag()).toBe("0");
  const ofAll = await log.tail({ from: 1 }, () => {});
  plain.undelivered = 7;
  expect(await lag()).toBe("7");
  await ofAll.stop();
  expect(await lag()).toBe("0");
  await Promise.all([ofSubject.stop(), ofMany.stop()]);
});

test("anything but the metrics is not found", async () => {
  const { url } = await serveMetrics(address, source);
  expect((await fetch(new URL("/", url))).status).toBe(404);
  expect((await fetch(`${url}?from=prometheus`)).status).toBe(200);
});

test("an address that is taken is a wrong setting", async () => {
  const { url } = await serveMetrics(address, source);
  const taken = { host: "127.0.0.1", port: Number(new URL(url).port) };
  await expect(serveMetrics(taken, source)).rejects.toMatchObject({ code: "invalid_request" });
});
