/** What a resources server answers and obeys, on a participant that has been opened for it. */
import { eventSchema } from "@holdpoint/eventsourcing";
import {
  CloseRequest,
  GrantRequest,
  logEvents,
  type ResourcesEvent,
  SeedRequest,
  ToolRequest,
  VerifyRequest,
} from "@holdpoint/schemas";
import { randomBytes } from "node:crypto";
import type { Entrance } from "../admission.ts";
import { sha256 } from "../hash.ts";
import type { Service } from "../participant-options.ts";
import type { RoleSpec } from "../role-spec.ts";
import { type AnyMethod, method } from "../rpc-server.ts";
import { Bench, Benches } from "./bench.ts";
import type { Resources } from "./define-resources.ts";
import { type Desk, type Given, heldBy, type ResourcesParticipant } from "./desk.ts";
import { close, retire } from "./ending.ts";
import { Externals } from "./externals.ts";
import { GrantBook } from "./grants.ts";
import { type McpAddress, McpEdge } from "./mcp-edge.ts";
import { Recovery } from "./recovery.ts";
import { resourcesKind, type ResourcesSession } from "./resources-session.ts";
import { Seeding } from "./seeding.ts";
import { toolBlocks, ToolCalls } from "./tool-calls.ts";
import { verify } from "./verifying.ts";

export interface ServingOptions {
  /** Where MCP is served, for a definition with `grants`. Default: a free port of loopback. */
  readonly mcp?: McpAddress;
  /** So many random bytes. Default: the platform's. */
  readonly random?: (bytes: number) => Uint8Array;
  /** Epoch milliseconds, by which grants expire. Default: the stream's time. */
  readonly nowMs?: () => number;
}

export interface ServedResources {
  /** Where MCP is spoken; undefined: nowhere. */
  readonly mcpUrl: string | undefined;
  /** Ends the participant without a goodbye, and returns once what runs has ended; its successor goes on. */
  stop(): Promise<void>;
}

/**
 * What a participant is opened with to serve `resources`.
 *
 * @throws HoldpointError `invalid_request` where the definition finds no mode
 */
export async function resourcesSpec(resources: Resources): Promise<RoleSpec<ResourcesSession, ResourcesEvent>> {
  return {
    role: "resources",
    mode: await resources.mode(),
    kind: resourcesKind({ hash: sha256, evolve: resources.evolve }),
    schema: eventSchema(logEvents.resources),
  };
}

/** Goes on with the sessions of the log, and serves. @param participant opened with `resourcesSpec(resources)` */
export async function serveResources(
  resources: Resources,
  participant: ResourcesParticipant,
  { mcp = {}, random = randomBytes, nowMs = () => participant.clock.nowMs() }: ServingOptions = {},
): Promise<ServedResources> {
  const { grantTtlMs: ttlMs } = resources;
  const edge = ttlMs === undefined ? undefined : await McpEdge.listen(resources, participant, mcp);
  const grants =
    ttlMs === undefined ? undefined : new GrantBook({ participant, ttlMs, random, nowMs, mcpUrl: edge?.url });
  const desk: Desk = {
    resources,
    participant,
    benches: new Benches(() => new Bench<Given>()),
    grants,
    newId: (kind, { rollout, attempt }) =>
      `${kind}-${rollout.slice(0, 64)}-${attempt}-${Buffer.from(random(6)).toString("hex")}`,
  };
  const calls = new ToolCalls(desk);
  await participant.serve(serviceOf(desk, calls));
  edge?.open(desk, calls);
  return {
    mcpUrl: edge?.url,
    stop: async () => {
      await participant.stop();
      await edge?.stop();
      await desk.benches.settled();
    },
  };
}

/** What a session's last process left is looked at before anything is served. */
function serviceOf(desk: Desk, calls: ToolCalls): Service<ResourcesSession, ResourcesEvent> {
  const recovery = new Recovery(desk);
  const seeding = new Seeding(desk);
  const externals = new Externals(desk);
  recovery.start();
  return {
    methods: methodsOf(desk, { calls, seeding, externals }),
    hooks: {
      ...externals.hooks,
      blockers: () => recovery.blockers,
      retire: async (marks) => {
        await retire(desk, externals, marks);
        return [];
      },
    },
  };
}

interface Parts {
  readonly calls: ToolCalls;
  readonly seeding: Seeding;
  readonly externals: Externals;
}

function methodsOf(desk: Desk, { calls, seeding, externals }: Parts): Readonly<Record<string, AnyMethod>> {
  return {
    ...methodsOfWork(desk, calls),
    seed: method({
      body: SeedRequest,
      whileClosed: "held",
      seeds: true,
      blocks: "seed in flight",
      handle: (episode, request) => seeding.seed(episode, request),
    }),
    close: method({
      body: CloseRequest,
      whileClosed: "through",
      ends: true,
      handle: async (episode) => {
        await close(desk, externals, episode);
        return {};
      },
    }),
  };
}

function methodsOfWork(desk: Desk, calls: ToolCalls): Readonly<Record<string, AnyMethod>> {
  const { participant, resources, grants } = desk;
  const held = heldBy(participant);
  const tool = method({
    body: ToolRequest,
    whileClosed: "through", // what the call says decides
    handle: async (episode, { turn, index, name, arguments: input, restart = false }) => {
      const entrance: Entrance = restart ? { whileClosed: "through" } : held(toolBlocks);
      const asked = { name, arguments: input };
      const call = () => calls.direct(episode, { turn, index }, asked);
      const { content } = await participant.admission.enter(episode, entrance, call);
      return { result: content };
    },
  });
  const verifying = method({
    body: VerifyRequest,
    ...(resources.terms.verify === "wait" ? held("verify in flight") : { whileClosed: "through" }),
    handle: async (episode, { output }) => ({ verdict: await verify(desk, episode, output) }),
  });
  if (grants === undefined) return { tool, verify: verifying };
  const grant = method({
    body: GrantRequest,
    whileClosed: "through",
    handle: async (episode) => ({ access: await grants.issue(episode) }),
  });
  return { tool, verify: verifying, grant };
}
