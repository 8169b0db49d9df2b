import * as z from "zod";

/** The schema of an event: its `type`, a past tense, and its `data`. Unknown fields of the data are let through. */
export function event<Type extends string, Shape extends z.ZodRawShape>(type: Type, data: Shape) {
  return z.object({ type: z.literal(type), data: z.object(data) });
}
