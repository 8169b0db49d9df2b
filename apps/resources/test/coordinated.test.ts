/** Checkpoints, restores and a release by the real coordinator, with the resources server as a process and simulated peers. */
import { type Operation, Outcome, type Role, serviceSubject } from "@holdpoint/schemas";
import { digest, joinRun, type SimulatedProcess } from "@holdpoint/testing";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { connectAs, patience, startProcess } from "./processes.ts";
import { Run, someTask } from "./run.ts";

const coordinatorProgram = fileURLToPath(new URL("../../coordinator/src/main.ts", import.meta.url));
const original = { rollout: "r", attempt: 0 };

/** A participant that obeys its gate over the broker. */
async function join(run: Run, role: Role): Promise<SimulatedProcess> {
  const named = { role, instance: "main", worker: "0", mode: "exported" as const };
  return (await joinRun(await connectAs(role), run.name, named)).process;
}

async function start(): Promise<{ run: Run; command: (operation: Operation, body: object) => Promise<Outcome> }> {
  const run = await Run.open();
  const leader = startProcess({ HOLDPOINT_RUN: run.name }, { program: coordinatorProgram, user: "coordinator" });
  await vi.waitFor(() => expect(leader.output()).toContain("coordinator leads"), patience);
  const operator = await connectAs("operator");
  const command = async (operation: Operation, body: object): Promise<Outcome> => {
    const text = JSON.stringify({ timeoutMs: 60_000, ...body });
    const bytes = await operator.request(serviceSubject(run.name, operation), text, { timeoutMs: 60_000 });
    return Outcome.parse(JSON.parse(new TextDecoder().decode(bytes)));
  };
  return { run, command };
}

test("[L5] a checkpoint stands where the agent and the sandbox say the same of the tool calls, and is restored after a crash, twice", async () => {
  const { run, command } = await start();
  const [environment, , agent] = [
    await join(run, "environment"),
    await join(run, "model"),
    await join(run, "agent"),
  ] as const;
  const first = await run.spawn();
  environment.sessions = [original];
  await run.seed(original, someTask());
  const result = await run.tool(original, "0/0", "run_tests");

  agent.sessions = [{ ...original, edges: { tools: { received: 0, last: null } } }];
  const torn = await command("checkpoint", { checkpointId: "c0" });
  expect(torn).toMatchObject({ ok: false });
  await command("resume", { checkpointId: "c0" });
  agent.sessions = [{ ...original, edges: { tools: { received: 1, last: digest(result) } } }];
  expect(await command("checkpoint", { checkpointId: "c1" })).toMatchObject({ ok: true });

  await run.tool(original, "1/0", "edit_file", { path: "index.js", line: 1, old: await lineOf(run), new: "// lost" });
  first.child.kill("SIGKILL");
  await first.exited;
  await run.spawn();
  for (const attempt of [1, 2]) {
    await command("retire", { rollouts: [{ rollout: "r", attempt: attempt - 1 }] });
    const restored = await command("restore", { checkpointId: `x${attempt}`, source: "c1" });
    expect(restored).toMatchObject({ ok: true, result: { phase: "restored" } });
    const receipt = restored.result?.receipt?.find(({ role }) => role === "resources");
    expect(receipt).toMatchObject({ continued: [{ rollout: "r", attempt }], restarted: [], leftOut: [] });
    expect(receipt?.found).toBe(receipt?.expected);
    await command("resume", { checkpointId: `x${attempt}` });
    const episode = { rollout: "r", attempt };
    await run.seed(episode, someTask());
    expect(await run.tool(episode, "0/0", "run_tests")).toBe(result);
    expect(await run.tool(episode, "1/0", "read_file", { path: "index.js" })).not.toContain("// lost");
  }
  await command("retire", { rollouts: [{ rollout: "r", attempt: 2 }] });
  expect(run.sandboxes()).toEqual([]);
  expect(await command("release", { checkpointId: "x2", kept: [] })).toMatchObject({ ok: true });
  expect(run.snapshots()).toEqual([]);
});

/** The first line of the package's file, as its sandbox has it. */
async function lineOf(run: Run): Promise<string> {
  const text = await run.tool(original, "0/1", "read_file", { path: "index.js" });
  return text.split("\n")[0] ?? "";
}
