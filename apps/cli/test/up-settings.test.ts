import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { settingsFrom } from "../src/run/up-settings.ts";

/** Where each process, and every one of them, says what it is told. */
const sources = [
  "../../../libs/participant/src/process.ts",
  "../../../libs/participant/src/agent/run-agent.ts",
  "../../../libs/participant/src/model/run-model.ts",
  "../../../libs/participant/src/resources/running.ts",
  "../../coordinator/src/settings.ts",
  "../../resources/src/settings.ts",
  "../../model/src/settings.ts",
  "../../trainer/src/settings.ts",
] as const;

function namesIn(source: string): readonly string[] {
  const text = readFileSync(new URL(source, import.meta.url), "utf8");
  return [...text.matchAll(/^ {2}((?:HOLDPOINT|NATS|OTEL|LOG)_[A-Z_]+): /gm)].map(([, name = ""]) => name);
}

/** What becomes of one variable. */
function handing(name: string): string {
  try {
    return JSON.stringify(settingsFrom({ [name]: "0" }).settings);
  } catch (error) {
    return String(error);
  }
}

test("every setting of a process of `up` is handed on, or refused by name", () => {
  const own = ["HOLDPOINT_RUN", "LOG_LEVEL", "OTEL_EXPORTER_OTLP_ENDPOINT"];
  const names = sources
    .slice(0, -1)
    .flatMap(namesIn)
    .filter((name) => !own.includes(name));
  expect(names.length).toBeGreaterThan(12);
  for (const name of names) expect(handing(name)).toMatch(new RegExp(`"${name}":"0"|${name}: `));
});

test("every setting of a process stands in the operators' or the trainer's page", () => {
  const pages = ["operators.md", "trainer.md"].map((page) =>
    readFileSync(new URL(`../../../docs/${page}`, import.meta.url), "utf8"),
  );
  expect(sources.flatMap(namesIn).filter((name) => !pages.join("").includes(`\`${name}\``))).toEqual([]);
});

test("each setting goes to the process that it is of, and an empty one to nobody", () => {
  const env = {
    HOLDPOINT_LEASE_GRACE_MS: "5",
    HOLDPOINT_MODEL_PORT: "8000",
    HOLDPOINT_METRICS: "0",
    HOLDPOINT_HOLD_MS: "",
  };
  const { settings, unused } = settingsFrom(env);

  expect(settings.coordinator).toEqual({ HOLDPOINT_LEASE_GRACE_MS: "5", HOLDPOINT_METRICS: "0" });
  expect(settings.model).toEqual({ HOLDPOINT_MODEL_PORT: "8000", HOLDPOINT_METRICS: "0" });
  expect(settings.agent).toEqual({ HOLDPOINT_METRICS: "0" });
  expect(unused).toEqual([]);
});

test("what reaches nobody is named", () => {
  const env = { HOLDPOINT_ROLLOUTS: "8", HOLDPOINT_LEASE: "5", HOLDPOINT_RUN: "a", LOG_LEVEL: "debug", PATH: "/bin" };
  expect(settingsFrom(env).unused).toEqual(["HOLDPOINT_ROLLOUTS", "HOLDPOINT_LEASE"]);
});
