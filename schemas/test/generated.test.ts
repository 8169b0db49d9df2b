/** The generated files are what the schemas say, and what they claim to be. */
import specification from "@asyncapi/specs/schemas/3.0.0.json" with { type: "json" };
import { Ajv, type AnySchemaObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import * as z from "zod";
import { generatedFiles } from "../generate/files.ts";
import * as contract from "../src/index.ts";
import { type Operation, operations, parseCommand } from "../src/index.ts";

const folder = join(import.meta.dirname, "..");
const document: unknown = parse(readFileSync(join(folder, "asyncapi.yaml"), "utf8"));
const Loose = z.record(z.string(), z.unknown());
const Channels = z.record(z.string(), z.looseObject({ messages: Loose }));
const Operations = z.record(
  z.string(),
  z.looseObject({ channel: z.object({ $ref: z.string() }), reply: z.looseObject({}).optional() }),
);
const AsyncApi = z.looseObject({ channels: Channels, operations: Operations });

/** Every JSON Schema file by its name, ready to validate with. */
function validators(): Ajv2020 {
  const ajv = new Ajv2020({ allErrors: true, strict: true, strictRequired: false, formats: { "date-time": true } });
  for (const name of readdirSync(join(folder, "json"))) {
    const schema: AnySchemaObject = JSON.parse(readFileSync(join(folder, "json", name), "utf8"));
    ajv.addSchema(schema);
  }
  return ajv;
}

/** Every `$ref` in `value`, wherever it stands. */
function references(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, part]: [string, unknown]) =>
    name === "$ref" && typeof part === "string" ? [part] : references(part),
  );
}

function resolve(reference: string): unknown {
  if (!reference.startsWith("#/")) return existsSync(join(folder, reference)) ? reference : undefined;
  return reference
    .slice(2)
    .split("/")
    .reduce<unknown>((part, name) => Loose.safeParse(part).data?.[name], document);
}

test("the generated files are what the schemas give, and there is none besides", () => {
  const generated = generatedFiles();
  const there = ["asyncapi.yaml", ...readdirSync(join(folder, "json")).map((name) => `json/${name}`)];
  const stale = [...generated].filter(
    ([path, text]) => !there.includes(path) || readFileSync(join(folder, path), "utf8") !== text,
  );
  const left = there.filter((path) => !generated.has(path));
  const differing = [...stale.map(([path]) => path), ...left];
  expect(
    differing,
    "schemas/src has changed since these were generated: run `npm run schemas` and commit them",
  ).toEqual([]);
});

test("generating twice gives the same bytes", () => {
  expect([...generatedFiles()]).toEqual([...generatedFiles()]);
});

test("every JSON Schema is one, and every reference in it leads somewhere", () => {
  const ajv = validators();
  for (const name of readdirSync(join(folder, "json"))) expect(() => ajv.getSchema(name)).not.toThrow();
});

/** The specification's schema brings its own copy of what JSON Schemas are made of. */
const forSpecification = { strict: false, meta: false, validateSchema: false, validateFormats: false } as const;

test("the AsyncAPI document is valid by the specification's own schema", () => {
  const ajv = new Ajv({ ...forSpecification, allErrors: true });
  ajv.validate(specification, document);
  expect(ajv.errors).toBeNull();
});

test("a document that says what AsyncAPI does not know is found invalid", () => {
  const ajv = new Ajv(forSpecification);
  const wrong = { ...AsyncApi.parse(document), channels: { control: { adress: "hp.{run}.control" } } };
  expect(ajv.validate(specification, wrong)).toBe(false);
});

test("every reference in the AsyncAPI document leads somewhere", () => {
  const all = references(document);
  expect(all.length).toBeGreaterThan(100);
  expect(all.filter((reference) => resolve(reference) === undefined)).toEqual([]);
});

test("every channel of the AsyncAPI document is used by an operation, and every parameter of it is described", () => {
  const { channels, operations: used } = AsyncApi.parse(document);
  const reached = references(used);
  expect(Object.keys(channels).filter((name) => !reached.includes(`#/channels/${name}`))).toEqual([]);
  expect(JSON.stringify(channels)).not.toContain('"description":null');
});

test("every kind of subject that is built has a channel, which AsyncAPI names", () => {
  const builders = Object.keys(contract).filter((name) => /^(?!parse).*Subject$/.test(name));
  const kinds = Object.keys(AsyncApi.parse(document).channels).map((name) => name.replace(/\..*$/, ""));
  const channelOf = {
    blobSubject: "blob",
    commandSubject: "cmd",
    controlSubject: "control",
    leadSubject: "lead",
    logSubject: "log",
    outcomeSubject: "outcome",
    resultSubject: "result",
    rpcSubject: "rpc",
    seedSubject: "rpc",
    serviceSubject: "ctl",
    snapshotSubject: "snapshot",
  };
  expect(builders.toSorted()).toEqual(Object.keys(channelOf));
  expect([...new Set(kinds)].toSorted()).toEqual(
    [...new Set([...Object.values(channelOf), "live", "reply"])].toSorted(),
  );
});

const deadlines: readonly object[] = [{}, { timeoutMs: 1 }, { deadlineAt: "2027-01-01T00:00:00Z" }];
const twoDeadlines = { timeoutMs: 1, deadlineAt: "2027-01-01T00:00:00Z" };
const episode = { rollout: "r", attempt: 0 };
const bodies: Readonly<Record<Operation, readonly object[]>> = {
  discover: [{}],
  status: [{}],
  prepare: [{ checkpointId: "c" }, {}],
  renew: [{ checkpointId: "c" }, { checkpointId: ".c" }],
  capture: [{ checkpointId: "c" }, { checkpointId: "c", scope: [episode] }, { checkpointId: "c", scope: ["r"] }],
  proceed: [{ checkpointId: "c" }, { checkpointId: "c", extra: 1 }],
  commit: [
    { checkpointId: "c", stop: true },
    { checkpointId: "c", stop: "yes" },
  ],
  checkpoint: [
    { checkpointId: "c", scope: [{ ...episode, extra: 1 }] },
    { checkpointId: "c", scope: [] },
  ],
  resume: [{ checkpointId: "c" }, { checkpointId: 1 }],
  restore: [
    { checkpointId: "d", source: "c" },
    { checkpointId: "d", source: "c", scope: ["r"], allowIncomplete: true },
  ],
  retire: [{ rollouts: [episode] }, { rollouts: [] }, { rollouts: [{ rollout: "r", attempt: -1 }] }],
  forget: [{ rollouts: ["r"] }, { rollouts: ["r.s"] }, { rollouts: [] }],
  remove: [
    { role: "agent", instance: "a" },
    { role: "agent", instance: "a", worker: "0" },
    { role: "trainer", instance: "a" },
  ],
  release: [{ checkpointId: "c", kept: [] }, { checkpointId: "c" }, { checkpointId: "c", kept: ["c", "-"] }],
};

test.each(operations)(
  "the JSON Schema of the body of %s accepts what the code accepts, and nothing else",
  (operation) => {
    const ajv = validators();
    const samples = bodies[operation].flatMap((body) =>
      [...deadlines, twoDeadlines].map((given) => ({ ...body, ...given })),
    );
    const more = [...samples, { ...samples[0], operation }, [], null, "text"];
    const accepted = more.map((body) => ajv.validate(`command.${operation}.json`, body));
    expect(accepted).toEqual(more.map((body) => parseCommand(operation, body).success));
    expect(new Set(accepted)).toEqual(new Set([true, false]));
  },
);
