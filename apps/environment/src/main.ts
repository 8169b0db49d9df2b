/** The environment of the repair workload: each task goes through the four steps, and is worth what its tests say. */
import { defineEnvironment, runEnvironment } from "@holdpoint/participant";
import * as z from "zod";

await runEnvironment(defineEnvironment({ name: "repair", mode: "exported", task: z.json() }));
