import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import * as z from "zod";

const Report = z.looseObject({ checks: z.array(z.looseObject({ faults: z.array(z.string()) })) });
const program = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "holdpoint-test-"));

afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("[S5] rollouts that went through kills of everything and a restore end as those that were left alone", () => {
  const args = ["demo", "--rollouts", "4", "--seed", "5", "--json", "--out", folder];
  const { status, stdout } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8" });

  const report = Report.parse(JSON.parse(stdout));
  expect(report.checks.filter(({ faults }) => faults.length > 0)).toEqual([]);
  expect(report).toMatchObject({ equal: true, numbers: { kills: 8 } });
  expect(status).toBe(0);
  expect(JSON.parse(readFileSync(join(folder, "report.json"), "utf8"))).toEqual(report);
  expect(readFileSync(join(folder, "report.html"), "utf8")).toContain("Both runs ended the same.");
}, 600_000);
