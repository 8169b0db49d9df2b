/**
 * The wire contract as JSON Schema 2020-12: a file for each exported schema, for the body of each command, and for what may
 * stand on the log of each role.
 *
 * They say what a writer may write. Readers pass over unknown types and fields of events, so only commands and requests
 * refuse additional properties.
 */
import * as z from "zod";
import * as contract from "../src/index.ts";

type CommandOption = (typeof contract.Command.options)[number];

/** Without a file: a command's body leaves its operation to the subject, and the log of a role has one union for all. */
const coveredElsewhere: ReadonlySet<unknown> = new Set([
  contract.Command,
  contract.ParticipantEvent,
  contract.EnvironmentEvent,
  contract.AgentEvent,
  contract.ResourcesEvent,
  contract.ModelEvent,
  contract.TrainerEvent,
]);

const commands: ReadonlyMap<unknown, CommandOption> = new Map(
  contract.Command.options.map((option) => [option, option] as const),
);

function operationOf({ shape }: CommandOption): contract.Operation {
  return shape.operation.value;
}

/** The name of a schema's file, without the ending: `RunRequest` becomes `run-request`. */
function kebab(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])[A-Z]/g, "-$&").toLowerCase();
}

/** Every schema that has a file, with the file's name. */
function named(): readonly (readonly [string, z.ZodType])[] {
  const exported = Object.entries(contract).flatMap(([name, value]: [string, unknown]) =>
    value instanceof z.ZodType && !coveredElsewhere.has(value) ? [[kebab(name), value] as const] : [],
  );
  const bodies = [...commands.values()].map((option) => [`command.${operationOf(option)}`, option] as const);
  const logs = Object.entries(contract.logEvents).map(([role, union]) => [`log.${role}`, union] as const);
  return [...exported, ...bodies, ...logs];
}

/** The file of an exported schema, such as `run-request.json`. */
export function fileOf(schema: z.ZodType): string {
  const found = named().find(([, known]) => known === schema);
  if (found === undefined) throw new Error("a schema that the contract does not export has no file");
  return `${found[0]}.json`;
}

/** The text of each file, by its name. */
export function jsonSchemaFiles(): ReadonlyMap<string, string> {
  const registry = z.registry<{ id: string; title: string }>();
  for (const [id, schema] of named()) registry.add(schema, { id, title: id });
  const { schemas } = z.toJSONSchema(registry, {
    io: "input",
    target: "draft-2020-12",
    metadata: registry,
    uri: (id) => `${id}.json`,
    override: ({ zodSchema, jsonSchema }) => {
      const option = commands.get(zodSchema);
      if (option !== undefined) Object.assign(jsonSchema, bodyOf(jsonSchema, option));
    },
  });
  return new Map(Object.entries(schemas).map(([id, schema]) => [`${id}.json`, `${JSON.stringify(schema, null, 2)}\n`]));
}

/** A command as its body says it: without the operation, and with the rule for its deadline, which is code in zod. */
function bodyOf(
  { properties = {}, required = [] }: z.core.JSONSchema.BaseSchema,
  option: CommandOption,
): z.core.JSONSchema.BaseSchema {
  const { operation: _, ...rest } = properties;
  const isQuestion = option.safeParse({ operation: operationOf(option) }).success;
  const exactlyOne = { oneOf: [{ required: ["deadlineAt"] }, { required: ["timeoutMs"] }] };
  const atMostOne = { not: { required: ["deadlineAt", "timeoutMs"] } };
  return {
    properties: rest,
    required: required.filter((name) => name !== "operation"),
    ...(isQuestion ? atMostOne : exactlyOne),
  };
}
