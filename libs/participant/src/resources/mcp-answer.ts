/** Answers of the Model Context Protocol, to one request of a caller who is known. */
import { HoldpointError } from "@holdpoint/errors";
import { type Episode, Token } from "@holdpoint/schemas";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  type CallToolRequest,
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Desk, heldBy } from "./desk.ts";
import { argumentsText, type ToolCalls, toolBlocks } from "./tool-calls.ts";

export interface McpCaller {
  readonly desk: Desk;
  readonly calls: ToolCalls;
  readonly episode: Episode;
  /** Aborted when the client has gone, or the server stops: what has not begun by then never does. */
  readonly gone: AbortSignal;
}

/** In `_meta` of a call: a name, 1 to 128 of `A-Z a-z 0-9 _ -`, under which the same call is answered again. */
const callNameMeta = "holdpoint/call";

/** The JSON-RPC code of our refusals; `data.code` has ours. */
const refusedCode = -32050;

/** Answers a POST. Returns once the answer is under way. */
export async function answerMcp(caller: McpCaller, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const server = serverFor(caller);
  const transport = new StreamableHTTPServerTransport();
  response.once("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}

function serverFor(caller: McpCaller): Server {
  const { resources } = caller.desk;
  const server = new Server({ name: resources.name, version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...resources.tools].map(([name, { description, inputSchema }]) => ({ name, description, inputSchema })),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => called(caller, params));
  return server;
}

async function called(caller: McpCaller, params: CallToolRequest["params"]): Promise<CallToolResult> {
  try {
    return await admitted(caller, params);
  } catch (error) {
    throw protocolError(error);
  }
}

async function admitted(caller: McpCaller, { name, arguments: input, _meta }: CallToolRequest["params"]) {
  const { desk, calls, episode, gone } = caller;
  const { participant, resources } = desk;
  if (!resources.tools.has(name)) {
    throw new HoldpointError(
      "invalid_request",
      `there is no tool ${name}; there are ${[...resources.tools.keys()].join(", ")}`,
    );
  }
  const key = keyOf(_meta?.[callNameMeta]);
  // Who calls by a token does not say whether the episode is a restart elsewhere: its call is held and waited for like any other.
  const entrance = { ...heldBy(participant)(toolBlocks), signal: gone };
  const given = await participant.admission.enter(episode, entrance, () => {
    const asked = { name, arguments: argumentsText(input) };
    return calls.mcp(episode, asked, { signal: gone, ...(key !== undefined && { key }) });
  });
  const text = await participant.contents.read(given.content);
  return { content: [{ type: "text" as const, text }], ...(given.isError && { isError: true }) };
}

function keyOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const key = Token.safeParse(value);
  if (key.success) return key.data;
  throw new HoldpointError("invalid_request", `_meta["${callNameMeta}"]: expected 1 to 128 of A-Z a-z 0-9 _ -`);
}

/** As the protocol carries errors: never as the output of a tool, which a model would read. */
function protocolError(error: unknown): Error {
  if (!HoldpointError.is(error)) return new Error("internal error", { cause: error });
  const { code, message, details, disposition } = error;
  const rpcCode: number = code === "invalid_request" ? ErrorCode.InvalidParams : refusedCode;
  const data = { code, retry: disposition === "retry", details };
  return Object.assign(new Error(message), { code: rpcCode, data });
}
