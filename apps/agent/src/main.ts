/** The agent: a small tool-calling loop, made checkpointable by the participant SDK. Wiring, and nothing else. */
import { runAgent } from "@holdpoint/participant";
import { repairAgent } from "./repair-agent.ts";

await runAgent(repairAgent);
