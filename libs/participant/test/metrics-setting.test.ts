import { ProcessSettings, readSettings } from "@holdpoint/participant";
import { expect, test } from "vitest";

function metricsOf(text: string | undefined) {
  return readSettings(ProcessSettings, text === undefined ? {} : { HOLDPOINT_METRICS: text }).HOLDPOINT_METRICS;
}

test.each([
  ["9464", "127.0.0.1", 9464],
  ["0", "127.0.0.1", 0],
  ["0.0.0.0:9464", "0.0.0.0", 9464],
  ["node-7.cluster:65535", "node-7.cluster", 65_535],
  ["[::1]:9464", "::1", 9464],
])("metrics at %s are served by %s, port %i", (text, host, port) => {
  expect(metricsOf(text)).toEqual({ host, port });
});

test("without the setting there are none", () => {
  expect(metricsOf(undefined)).toBeUndefined();
});

test.each(["", "http", "localhost:", "::1:9464", "1.2.3.4:99999", "65536", "-1", "http://127.0.0.1:9464"])(
  "%s is no address for metrics",
  (text) => {
    expect(() => metricsOf(text)).toThrow(/HOLDPOINT_METRICS/);
  },
);
