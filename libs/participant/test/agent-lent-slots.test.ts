/** A slot that is lent to an activation that runs again, and given back before it was had. */
import { defineAgent } from "@holdpoint/participant";
import { expect, test } from "vitest";
import * as z from "zod";
import { AgentRoom, until } from "./agent-room.ts";
import { episodeOf, turns } from "./room.ts";

test("a lent slot that is given back while it is queued for goes to whoever comes next", async () => {
  const [r1, r2, r3] = [episodeOf("r1"), episodeOf("r2"), episodeOf("r3")];
  const room = await AgentRoom.open();
  const letGo = Promise.withResolvers<void>();
  const given = Promise.withResolvers<void>();
  let life = 1;
  let served: string[] = [];
  const definition = defineAgent({
    name: "lender",
    mode: "exported",
    seed: z.unknown(),
    slots: 1,
    activate: async (session) => {
      const { rollout } = session.episode;
      const slot = await session.slot();
      if (rollout === "r1") {
        if (life === 2) await until(() => served.includes("r2"));
        const used = session.tool("look", "{}");
        if (life === 2) await turns();
        slot.release();
        if (life === 2) given.resolve();
        await used;
        if (life === 1) return new Promise(() => {});
        await session.slot();
      }
      served.push(rollout);
      if (rollout === "r2") await letGo.promise;
      return "done";
    },
  });
  const before = await room.agent(definition);
  await room.seed(r1);
  void room.activate(r1);
  await until(async () => (await room.typesOf(r1)).includes("tool.returned"));
  await room.seed(r2);
  void room.activate(r2);
  await until(() => served.includes("r2"));
  await before.stop();
  [life, served] = [2, []];
  await room.agent(definition);
  await room.seed(r3);
  void room.activate(r3);
  await until(() => served.includes("r2"));
  await given.promise;
  await turns();
  letGo.resolve();
  await until(() => served.length === 3);
  expect(served.toSorted()).toEqual(["r1", "r2", "r3"]);
  room.model.stop();
});
