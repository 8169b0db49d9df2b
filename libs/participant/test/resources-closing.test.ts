/** A close that comes while its session is being made. */
import { describe, expect, test } from "vitest";
import { counterWith, Door, Shelf } from "./resources-counter.ts";
import { episodeOf, ResourcesRoom } from "./resources-room.ts";

const episode = episodeOf("r1");

/** A shelf that takes its time, and looks at its signal or does not. */
class SlowShelf extends Shelf {
  readonly slow = new Door();
  readonly #looks: boolean;

  constructor(looks: boolean) {
    super();
    this.#looks = looks;
  }

  override readonly open: Shelf["open"] = async (session, signal) => {
    this.live.set(session.rollout, 0);
    await this.slow.pass(this.#looks ? signal : undefined);
  };

  override readonly free: Shelf["free"] = async (unneeded) => {
    if ("session" in unneeded) this.live.delete(unneeded.session.rollout);
  };
}

describe("a close", () => {
  test.each([true, false])(
    "while the first seed is in flight leaves no session and nothing external (open looks at its signal: %s)",
    async (looks) => {
      const room = new ResourcesRoom();
      const external = new SlowShelf(looks);
      const served = await room.serve(counterWith({ external }));
      const seeding = room.seed(episode).catch(() => {});
      await external.slow.reached;
      const closing = room.rpc(episode, "close");
      if (!looks) external.slow.open();
      expect(await closing).toEqual({});
      await seeding;
      expect([...external.live]).toEqual([]);
      await expect(room.tool(episode, "0/0", "add", { by: 1 })).rejects.toMatchObject({ code: "not_found" });
      const [seeded, closed] = [await room.events("session.seeded"), await room.events("session.closed")];
      expect(seeded.length).toBe(closed.length);
      expect(room.troubles).toEqual([]);
      await served.stop();
    },
  );

  test("while the first seed is held calls it off: nothing is opened when admission opens", async () => {
    const room = new ResourcesRoom();
    const external = new Shelf();
    const served = await room.serve(counterWith({ external }));
    await room.asked("prepare", { checkpointId: "c1" });
    const seeding = room.seed(episode);
    seeding.catch(() => {});
    expect(await room.rpc(episode, "close")).toEqual({});
    await room.resume("c1");
    await expect(seeding).rejects.toMatchObject({ code: "stale_attempt" });
    expect([external.calls, await room.events("session.seeded")]).toEqual([[], []]);
    await served.stop();
  });
});
