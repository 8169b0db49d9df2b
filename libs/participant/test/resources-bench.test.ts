import { Bench, Benches } from "@holdpoint/participant";
import { describe, expect, test } from "vitest";

const episode = { rollout: "r", attempt: 0 };

function places() {
  const benches = new Benches(() => new Bench<string>());
  return { benches, all: () => benches.upTo([episode]) };
}

describe("the bench of an episode", () => {
  test("is forgotten after work that found no session, whether the work failed or not", async () => {
    const { benches, all } = places();
    const work = benches.at(
      episode,
      () => false,
      (bench) => bench.run(async () => Promise.reject(new Error("no session"))),
    );
    await expect(work).rejects.toThrow("no session");
    expect(all()).toEqual([]);
    expect(
      await benches.at(
        episode,
        () => false,
        (bench) => bench.join("one", async () => "done"),
      ),
    ).toBe("done");
    expect(all()).toEqual([]);
  });

  test("stays while other work runs there, and while its session lives", async () => {
    const { benches, all } = places();
    const going = Promise.withResolvers<string>();
    const first = benches.at(
      episode,
      () => false,
      (bench) => bench.run(() => going.promise),
    );
    await benches.at(
      episode,
      () => false,
      async () => {},
    );
    expect(all()).toHaveLength(1);
    going.resolve("done");
    await first;
    expect(all()).toEqual([]);
    await benches.at(
      episode,
      () => true,
      async () => {},
    );
    expect(all()).toHaveLength(1);
  });
});
