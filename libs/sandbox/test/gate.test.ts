import { expect, test } from "vitest";
import { Gate } from "../src/gate.ts";

/** Work that lasts until it is told to end. */
class Work {
  end: () => void = () => {};
  readonly promise = new Promise<void>((resolve) => {
    this.end = resolve;
  });
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("whoever closes the gate waits for those inside, and keeps the others out until it opens", async () => {
  const gate = new Gate();
  const events: string[] = [];
  const [one, two] = [new Work(), new Work()];
  const passes = [one, two].map(({ promise }, index) =>
    gate.pass(() => promise).then(() => events.push(`out ${index}`)),
  );
  const closing = gate.close().then(() => events.push("closed"));
  const late = gate.pass(async () => events.push("late"));
  await turn();
  one.end();
  await turn();
  expect(events).toEqual(["out 0"]);
  two.end();
  await Promise.all([...passes, closing]);
  await turn();
  expect(events.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(["closed", "out 0", "out 1"]);
  gate.open();
  await late;
  expect(events.at(-1)).toBe("late");
});

test("a gate that was closed twice opens when both have opened it", async () => {
  const gate = new Gate();
  const events: string[] = [];
  await gate.close();
  await gate.close();
  const late = gate.pass(async () => events.push("late"));
  gate.open();
  await turn();
  expect(events).toEqual([]);
  gate.open();
  await late;
  expect(events).toEqual(["late"]);
});

test("work that fails leaves the gate as well", async () => {
  const gate = new Gate();
  await expect(gate.pass(() => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  await gate.close();
  gate.open();
  expect(await gate.pass(async () => "passed")).toBe("passed");
});
