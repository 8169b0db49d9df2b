/** What goes to the policy model and comes from it, as far as the SDK looks into it. */
import { HoldpointError } from "@holdpoint/errors";
import * as z from "zod";

/** A request of OpenAI's chat completions, sent as it is. */
export interface ChatRequest {
  /** `<policy>@<version>`: with the version that the activation has, the same over every replay. */
  readonly model: string;
  readonly messages: readonly object[];
  readonly [field: string]: unknown;
}

const Message = z.looseObject({
  role: z.literal("assistant"),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]).nullish(),
  tool_calls: z
    .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .nullish(),
});

/** An assistant message. `tool_calls[].function.arguments` is JSON text, as the model wrote it. */
export type ModelMessage = z.infer<typeof Message>;

/** As it came, with its keys in their order: written again it is the same text. */
const AsItCame = z.custom<ModelMessage>((value) => Message.safeParse(value).success);

/** @throws HoldpointError `invalid_request` where `text` is no assistant message */
export function readMessage(text: string): ModelMessage {
  const value: unknown = JSON.parse(text);
  const message = AsItCame.safeParse(value);
  if (message.success) return message.data;
  const why = z.prettifyError(Message.safeParse(value).error ?? message.error);
  throw new HoldpointError("invalid_request", `what the model answered is no assistant message:\n${why}`);
}

/** The text of a message; of several parts, joined. */
export function messageText({ content }: Pick<ModelMessage, "content">): string {
  if (typeof content === "string") return content;
  return (content ?? []).map(({ text = "" }) => text).join("");
}
