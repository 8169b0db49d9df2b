import { HoldpointError } from "@holdpoint/errors";
import type { AbortSignalLike } from "@holdpoint/eventsourcing";
import { expect, test } from "vitest";
import { CommandService, type CommandServiceOptions } from "../src/command-service.ts";

const body = new TextEncoder().encode("{}");

function serviceWith(changes: Partial<CommandServiceOptions>): CommandService {
  return new CommandService({
    run: "r",
    publish: async () => 1,
    lastOn: async () => undefined,
    newMessageId: () => "id",
    isPrompt: () => true,
    storeWithinMs: 60_000,
    ...changes,
  });
}

/** A stream that takes nothing, until it is no longer waited for. */
async function stuck(_: unknown, signal: AbortSignalLike): Promise<number> {
  await new Promise<void>((resolve) => signal.addEventListener("abort", resolve));
  throw new HoldpointError("unavailable", "out of time");
}

test("a request that may have waited for long is refused with the advice to ask again, and nothing of it is stored", async () => {
  const published: unknown[] = [];
  const publish = async (draft: unknown) => published.push(draft);
  await expect(serviceWith({ publish, isPrompt: () => false }).obey("prepare", body)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/may have waited for long; nothing of it is stored: ask again/),
  });
  expect(published).toEqual([]);
});

test("a request that cannot be stored is given up, so that it is not obeyed when nobody waits for it any more", async () => {
  await expect(serviceWith({ publish: stuck, storeWithinMs: 1 }).obey("prepare", body)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/not known whether it is: see status, and ask again/),
  });
});

test("what the stream refuses for good is answered as it says", async () => {
  const refused = new HoldpointError("invalid_request", "too large");
  await expect(serviceWith({ publish: () => Promise.reject(refused) }).obey("prepare", body)).rejects.toBe(refused);
});
