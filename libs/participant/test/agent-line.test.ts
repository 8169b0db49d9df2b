/** The line for slots, without anybody who works in them. */
import { describe, expect, test } from "vitest";
import { Slots } from "../src/agent/slots.ts";

describe("the line", () => {
  test("gives a slot back once, however often that is said", () => {
    const slots = new Slots(1);
    const ticket = slots.join({ first: false });
    ticket.giveBack();
    ticket.giveBack();
    expect(slots.free).toBe(1);
  });

  test("is passed by who had a slot before, who may have it beyond the limit; then nobody else gets one before that is made up for", () => {
    const slots = new Slots(1);
    const [held, queued] = [slots.join({ first: false }), slots.join({ first: false })];
    const before = slots.join({ first: true });
    before.grant();
    expect([before.isHeld, queued.isHeld, slots.free]).toEqual([true, false, -1]);
    held.giveBack();
    expect(queued.isHeld).toBe(false);
    before.giveBack();
    expect([queued.isHeld, slots.free]).toEqual([true, 0]);
    queued.giveBack();
    expect(slots.free).toBe(1);
  });

  test("is left by whoever gives up, and is as before", () => {
    const slots = new Slots(1);
    const held = slots.join({ first: false });
    slots.join({ first: false }).giveBack();
    slots.join({ first: true }).giveBack();
    held.giveBack();
    expect(slots.free).toBe(1);
  });
});
