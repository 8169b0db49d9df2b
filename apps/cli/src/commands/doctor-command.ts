import { buildCommand } from "@stricli/core";
import { type CliContext, exitCodes, perform } from "./context.ts";
import { examine, type Finding } from "./doctor.ts";
import * as flags from "./flags.ts";

interface DoctorFlags {
  readonly run: string;
  readonly json: boolean;
}

export const doctorCommand = buildCommand<DoctorFlags, [], CliContext>({
  docs: { brief: "Whether all that is needed is here: Node, a broker, its durability, room" },
  parameters: { flags: { run: flags.run, json: flags.json } },
  func(options) {
    const { stdout } = this.process;
    return perform(this, options, async () => {
      const findings = await examine(options.run);
      const ok = findings.every((finding) => finding.ok);
      stdout.write(options.json ? `${JSON.stringify({ ok, findings })}\n` : textOf(findings));
      return ok ? exitCodes.ok : exitCodes.failed;
    });
  },
});

function textOf(findings: readonly Finding[]): string {
  return findings.map(({ ok, what, found }) => `${ok ? "ok" : "NO"}  ${what}: ${found}\n`).join("");
}
