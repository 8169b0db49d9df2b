/** A client of a resources server's MCP edge. */
import type { Access } from "@holdpoint/schemas";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as z from "zod";

/** A client of the MCP edge, as an agent's harness would have one. */
export async function mcpClient({ token, mcpUrl = "" }: Access): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const headers = { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(mcpUrl), { requestInit: { headers } });
  await client.connect(transport);
  return client;
}

const TextResult = z.object({ content: z.tuple([z.object({ text: z.string() })]), isError: z.boolean().optional() });

/** The text of an MCP call's result. */
export async function mcpTool(client: Client, name: string, input: object, callName?: string): Promise<string> {
  const meta = callName === undefined ? {} : { _meta: { "holdpoint/call": callName } };
  const result = TextResult.parse(await client.callTool({ name, arguments: { ...input }, ...meta }));
  return result.content[0].text;
}
