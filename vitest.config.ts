import { defineConfig } from "vitest/config";
import { ClosingLine } from "./test/closing-line.ts";

export default defineConfig({
  test: {
    include: ["**/test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/.stryker-tmp/**"],
    globalSetup: "./test/global-setup.ts",
    reporters: ["default", new ClosingLine()],
    // Tests run real brokers and processes on two shared cores: a bound against hanging, never a measure.
    testTimeout: 120_000,
    hookTimeout: 300_000,
    maxWorkers: 2,
  },
});
