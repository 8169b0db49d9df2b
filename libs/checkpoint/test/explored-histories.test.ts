/** Histories that an exploration found once: each broke a rule. */
import { test } from "vitest";
import { given } from "./given.ts";

test("[C12] a process that is still closed for what was resumed has a lease, also once another checkpoint has one", () => {
  given("two checkpoints").when("checkpoint c1", "environment.0 answers", "resume c1", "prepare c2").nothingIsBroken();
});

test("what was answered as a restart stays one until resume, whoever is removed and however late the answer was", () => {
  given("a removal")
    .when(
      "prepare c1",
      "environment.0 answers",
      "model.0 answers",
      "time passes",
      "agent.1 answers",
      "remove agent.1",
      "prepare c1",
      "environment.0 answers",
      "model.0 answers",
      "agent.0 answers",
      "commit c1",
    )
    .nothingIsBroken();
});

test("who is awaited to resume owes it, also where a controller resumes the same id once more", () => {
  given("one restore").when("restore x1", "time passes", "resume x1").nothingIsBroken();
});

test("a successor knows what a process knew that heard late of a resume, and had said that its lease ran out", () => {
  given("one restore")
    .when("restore x1", "agent.0 lags", "resume x1", "agent.0 expires", "agent.0 reads")
    .nothingIsBroken();
});
