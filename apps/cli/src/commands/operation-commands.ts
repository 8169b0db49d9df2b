/** The control operations as commands, by their names in the protocol. */
import { CheckpointId, type Episode, type Operation, Role, Token } from "@holdpoint/schemas";
import { buildCommand, type Command } from "@stricli/core";
import * as z from "zod";
import { type CliContext, perform } from "./context.ts";
import { send, type Sending } from "./controlling.ts";
import * as flags from "./flags.ts";

const sending = { run: flags.run, timeout: flags.timeout, json: flags.json } as const;

/** `g0-r1/2`: a rollout and an attempt. */
const episode = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}\/\d+$/, "expected <rollout>/<attempt>, such as g0-r1/0")
  .transform((text): Episode => {
    const [rollout = "", attempt] = text.split("/");
    return { rollout, attempt: Number(attempt) };
  });

const scope = {
  kind: "parsed",
  parse: flags.parserOf(episode),
  variadic: ",",
  optional: true,
  brief: "The episodes to hold; absent: all that can be",
  placeholder: "rollout/attempt,…",
} as const;

type Built = Command<CliContext>;

function question(operation: Operation, brief: string): Built {
  return buildCommand<Sending, [], CliContext>({
    docs: { brief },
    parameters: { flags: sending },
    func(options) {
      return perform(this, options, () => send(this, operation, options, {}));
    },
  });
}

function onCheckpoint(operation: Operation, brief: string): Built {
  return buildCommand<Sending & { readonly checkpoint: string }, [], CliContext>({
    docs: { brief },
    parameters: { flags: { ...sending, checkpoint: flags.checkpoint } },
    func(options) {
      return perform(this, options, () => send(this, operation, options, { checkpointId: options.checkpoint }));
    },
  });
}

interface Scoped extends Sending {
  readonly checkpoint: string;
  readonly scope?: readonly Episode[];
}

function onScope(operation: Operation, brief: string): Built {
  return buildCommand<Scoped, [], CliContext>({
    docs: { brief },
    parameters: { flags: { ...sending, checkpoint: flags.checkpoint, scope } },
    func(options) {
      const body = { checkpointId: options.checkpoint, scope: options.scope };
      return perform(this, options, () => send(this, operation, options, body));
    },
  });
}

const commit = buildCommand<Scoped & { readonly stop: boolean }, [], CliContext>({
  docs: { brief: "Make durable what the cut names" },
  parameters: {
    flags: {
      ...sending,
      checkpoint: flags.checkpoint,
      scope,
      stop: { kind: "boolean", default: false, brief: "External compute may be stopped once it is durable" },
    },
  },
  func(options) {
    const body = { checkpointId: options.checkpoint, scope: options.scope, stop: options.stop };
    return perform(this, options, () => send(this, "commit", options, body));
  },
});

interface Restoring extends Sending {
  readonly checkpoint: string;
  readonly source: string;
  readonly scope?: readonly string[];
  readonly allowIncomplete: boolean;
}

const restore = buildCommand<Restoring, [], CliContext>({
  docs: { brief: "Install a committed checkpoint under new attempts; admission stays closed until resume" },
  parameters: {
    flags: {
      ...sending,
      checkpoint: { ...flags.checkpoint, brief: "A fresh id for this restore" },
      source: { ...flags.checkpoint, brief: "The committed checkpoint" },
      scope: {
        kind: "parsed",
        parse: flags.parserOf(Token),
        variadic: ",",
        optional: true,
        brief: "The rollouts to continue; absent: all",
        placeholder: "rollout,…",
      },
      allowIncomplete: { kind: "boolean", default: false, brief: "Leave out what is missing, and say so" },
    },
  },
  func(options) {
    const { checkpoint, source, allowIncomplete } = options;
    const body = { checkpointId: checkpoint, source, scope: options.scope, allowIncomplete };
    return perform(this, options, () => send(this, "restore", options, body));
  },
});

const retire = buildCommand<Sending & { readonly rollouts: readonly Episode[] }, [], CliContext>({
  docs: { brief: "Stop attempts for good, each named one and all before it, and free what they hold" },
  parameters: {
    flags: {
      ...sending,
      rollouts: {
        kind: "parsed",
        parse: flags.parserOf(episode),
        variadic: ",",
        brief: "The highest attempt of each rollout",
        placeholder: "rollout/attempt,…",
      },
    },
  },
  func(options) {
    return perform(this, options, () => send(this, "retire", options, { rollouts: options.rollouts }));
  },
});

const forget = buildCommand<Sending & { readonly rollouts: readonly string[] }, [], CliContext>({
  docs: { brief: "Drop the marks of rollouts that can no longer run" },
  parameters: {
    flags: {
      ...sending,
      rollouts: {
        kind: "parsed",
        parse: flags.parserOf(Token),
        variadic: ",",
        brief: "The rollouts",
        placeholder: "rollout,…",
      },
    },
  },
  func(options) {
    return perform(this, options, () => send(this, "forget", options, { rollouts: options.rollouts }));
  },
});

interface Removing extends Sending {
  readonly role: Role;
  readonly instance: string;
  readonly worker?: string;
}

const remove = buildCommand<Removing, [], CliContext>({
  docs: { brief: "Expect a participant, or one worker of it, no more: it will not come back" },
  parameters: {
    flags: {
      ...sending,
      role: { kind: "parsed", parse: flags.parserOf(Role), brief: "Its role", placeholder: "role" },
      instance: { kind: "parsed", parse: flags.parserOf(Token), brief: "Its instance", placeholder: "instance" },
      worker: {
        kind: "parsed",
        parse: flags.parserOf(Token),
        optional: true,
        brief: "One worker of it; absent: all of them",
        placeholder: "worker",
      },
    },
  },
  func(options) {
    const { role, instance, worker } = options;
    const body = { role, instance, ...(worker !== undefined && { worker }) };
    return perform(this, options, () => send(this, "remove", options, body));
  },
});

interface Releasing extends Sending {
  readonly checkpoint: string;
  readonly kept?: readonly string[];
}

const release = buildCommand<Releasing, [], CliContext>({
  docs: { brief: "Free what only checkpoints need that are not kept" },
  parameters: {
    flags: {
      ...sending,
      checkpoint: { ...flags.checkpoint, brief: "The most recently resumed id" },
      kept: {
        kind: "parsed",
        parse: flags.parserOf(CheckpointId),
        variadic: ",",
        optional: true,
        brief: "The checkpoints that stay restorable; absent: none",
        placeholder: "id,…",
      },
    },
  },
  func(options) {
    const body = { checkpointId: options.checkpoint, kept: options.kept ?? [] };
    return perform(this, options, () => send(this, "release", options, body));
  },
});

/** By the names of the protocol. */
export const operationCommands: Readonly<Record<Operation, Built>> = {
  discover: question("discover", "Who takes part, and in which mode"),
  status: question("status", "Where the run stands: phase, participants, blockers, what can be restored"),
  prepare: onCheckpoint("prepare", "Close admission and wait until every session is at a boundary"),
  renew: onCheckpoint("renew", "Move the lease of an open checkpoint"),
  capture: onScope("capture", "Fix every session's state at a cut"),
  proceed: onCheckpoint("proceed", "Let work go on while the checkpoint stays open"),
  commit,
  checkpoint: onScope("checkpoint", "Prepare, capture, proceed, commit and resume in one"),
  resume: onCheckpoint("resume", "Open admission again; also aborts whatever is open"),
  restore,
  retire,
  forget,
  remove,
  release,
};
