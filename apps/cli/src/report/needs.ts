/** What the verdict rests on, as paragraphs for a person. */
export const needs: readonly string[] = [
  "Equality needs a policy that says the same when it is asked the same. This one does: a small softmax over edits, not a language " +
    "model, whose draws are seeded by the run's seed, the rollout and the turn, never by the attempt. Each group of siblings is " +
    "sampled with the policy version that the plan pins, and weights move in the order of the plan, so that it does not matter " +
    "which rollout ends first. With a model server that answers the same request differently the files would differ too; what " +
    "counts once would still count once.",
  "Processes were ended by kill -9. The broker writes each event to its disk before it acknowledges it, but a demo's disk may be " +
    "memory: this shows what a crash leaves, not what a loss of power does.",
];
