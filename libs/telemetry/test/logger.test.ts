import { HoldpointError } from "@holdpoint/errors";
import { createLogger, runLogger, traceIdOf } from "@holdpoint/telemetry";
import { expect, test } from "vitest";

function written(log: (logger: ReturnType<typeof createLogger>) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  log(createLogger("agent", "info", { write: (line) => void lines.push(line) }));
  return lines.map((line) => {
    const parsed: Record<string, unknown> = JSON.parse(line);
    return parsed;
  });
}

test("a line names its service, and is left out below the level", () => {
  const lines = written((logger) => {
    logger.debug("not this one");
    logger.info({ sequence: 7 }, "appended");
  });
  expect(lines).toEqual([expect.objectContaining({ service: "agent", sequence: 7, msg: "appended" })]);
});

test("an error is logged with its code and its details", () => {
  const error = new HoldpointError("not_found", "no such checkpoint", { details: { checkpointId: "c1" } });
  const [line] = written((logger) => logger.error({ err: error }, "refused"));
  expect(line?.["err"]).toMatchObject({ code: "not_found", details: { checkpointId: "c1" }, message: error.message });
});

test("any other error is logged as it is, and what is no error too", () => {
  const lines = written((logger) => {
    logger.error({ err: new TypeError("odd") }, "a bug");
    logger.error({ err: "text" }, "a bug");
  });
  expect(lines[0]?.["err"]).toMatchObject({ type: "TypeError", message: "odd" });
  expect(lines[0]?.["err"]).not.toHaveProperty("code");
  expect(lines[1]?.["err"]).toBe("text");
});

test("[F10] a password or token never reaches the log", () => {
  const lines = written((logger) => {
    logger.info({
      password: "hush-1",
      token: "hush-2",
      settings: { NATS_PASSWORD: "hush-3", authorization: "hush-4" },
    });
  });
  expect(JSON.stringify(lines)).not.toContain("hush");
});

test("a line that names a checkpoint names its trace, and no other does", () => {
  const lines = written((logger) => {
    const log = runLogger(logger, "demo", "agent-1");
    log.info({ checkpointId: "c1" }, "captured");
    log.child({ command: 7 }).info({ checkpointId: null }, "asked");
    log.info("started");
  });
  const shared = { service: "agent", run: "demo", incarnation: "agent-1" };
  expect(lines[0]).toMatchObject({ ...shared, checkpointId: "c1", traceId: traceIdOf("demo", "c1") });
  for (const line of lines.slice(1)) {
    expect(line).toMatchObject(shared);
    expect(line).not.toHaveProperty("traceId");
  }
});
