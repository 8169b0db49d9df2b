import { HoldpointError } from "@holdpoint/errors";
import { join } from "node:path";
import { type Environment, onPath, outputOf } from "./command.ts";

/** A first build downloads and compiles; on a slow machine it takes minutes. */
const buildTimeoutMs = 900_000;

export async function hasGo(env: Environment): Promise<boolean> {
  return (await onPath("go", env)).length > 0;
}

/**
 * Builds the program of a Go module, such as `example.org/tool@v1.2.3`, in `folder`.
 *
 * @returns the path of the program, which Go calls by the last word of the module's path that is not its version
 * @throws HoldpointError `unavailable` where Go is absent or the build fails
 */
export async function goInstall(module: string, name: string, folder: string, env: Environment): Promise<string> {
  const [go] = await onPath("go", env);
  if (go === undefined) throw new HoldpointError("unavailable", "`go` is not on the PATH");
  const { GOOS: _os, GOARCH: _architecture, ...here } = env;
  // Without cgo neither a C compiler nor this machine's C library matters.
  const settings = { ...here, GOBIN: folder, CGO_ENABLED: "0" };
  await outputOf(go, ["install", module], { env: settings, cwd: folder, timeoutMs: buildTimeoutMs });
  return join(folder, process.platform === "win32" ? `${name}.exe` : name);
}
