/** The flags that commands share. */
import { CheckpointId, maxTimeoutMs, Token } from "@holdpoint/schemas";
import * as z from "zod";

/** A parser that says what is wrong with an argument. */
export function parserOf<T>(schema: z.ZodType<T>): (input: string) => T {
  return (input) => {
    const parsed = schema.safeParse(input);
    if (parsed.success) return parsed.data;
    throw new Error(parsed.error.issues.map(({ message }) => message).join("; "));
  };
}

const integer = z.string().regex(/^\d+$/, "expected a whole number").transform(Number);

export function wholeNumber(least: number, most: number): (input: string) => number {
  const range = `expected a whole number from ${least} to ${most}`;
  return parserOf(integer.refine((value) => value >= least && value <= most, range));
}

export const json = { kind: "boolean", brief: "Print JSON", default: false } as const;

export const run = {
  kind: "parsed",
  parse: parserOf(Token),
  brief: "The run; absent: HOLDPOINT_RUN, else demo",
  default: process.env["HOLDPOINT_RUN"] || "demo",
  placeholder: "run",
} as const;

export const timeout = {
  kind: "parsed",
  parse: wholeNumber(1, maxTimeoutMs),
  brief: "Milliseconds that it may take",
  default: "30000",
  placeholder: "ms",
} as const;

export const checkpoint = {
  kind: "parsed",
  parse: parserOf(CheckpointId),
  brief: "The id of the checkpoint",
  placeholder: "id",
} as const;
