import { HoldpointError } from "@holdpoint/errors";
import { cachedProgram, intoCache } from "./cache.ts";
import { type Environment, isExecutable, onPath } from "./command.ts";
import { debianProgram, missingForDebian } from "./debian.ts";
import { type FindOptions, serverAt, type ServerProgram } from "./find.ts";
import { goInstall, hasGo } from "./go.ts";
import { minimumServerVersion } from "./version.ts";

const serverVersion = "2.15.2";
const serverModule = `github.com/nats-io/nats-server/v2@v${serverVersion}`;
const cliVersion = "0.5.0";
const cliModule = `github.com/nats-io/natscli/nats@v${cliVersion}`;

export interface ProvideOptions extends FindOptions {
  /** Is told what goes on, in a sentence, before each step that takes long. */
  readonly onProgress?: (sentence: string) => void;
}

/** One way to a nats-server. */
interface Route {
  /** Why this way is closed here; `undefined` where it is worth trying. */
  readonly obstacle: () => Promise<string | undefined>;
  readonly intent: string;
  readonly make: (folder: string) => Promise<string>;
}

/**
 * A nats-server in our cache: the one that is there, else built with Go, else taken out of Debian's package. Any number of
 * processes may ask at once.
 *
 * @throws HoldpointError `unavailable` where neither works here; it says what to type instead
 */
export async function provideServer({
  env = process.env,
  onProgress = () => {},
}: ProvideOptions = {}): Promise<ServerProgram> {
  const cached = await cachedServer(env);
  if (cached !== undefined) return cached;
  const failures: string[] = [];
  for (const { obstacle, intent, make } of serverRoutes(env)) {
    const reason = await obstacle();
    if (reason === undefined) onProgress(intent);
    try {
      if (reason !== undefined) throw new HoldpointError("unavailable", reason);
      return await serverIntoCache(make, env);
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
  }
  throw new HoldpointError("unavailable", whatToType(failures), { details: { failures } });
}

/**
 * The path of the `nats` command line: that in our cache, else the one on the `PATH`, else built with Go; `undefined` where
 * there is no Go to build it with.
 *
 * @throws HoldpointError `unavailable` where the build fails
 */
export async function provideCli({ env = process.env, onProgress = () => {} }: ProvideOptions = {}): Promise<
  string | undefined
> {
  const cached = cachedProgram("nats", env);
  if (await isExecutable(cached)) return cached;
  const [installed] = await onPath("nats", env);
  if (installed !== undefined) return installed;
  if (!(await hasGo(env))) return undefined;
  onProgress(`building the nats command line ${cliVersion} with Go, a minute or two`);
  return intoCache("nats", env, (folder) => goInstall(cliModule, "nats", folder, env));
}

async function cachedServer(env: Environment): Promise<ServerProgram | undefined> {
  try {
    return await serverAt(cachedProgram("nats-server", env), env);
  } catch {
    return undefined;
  }
}

/** Only a server that runs here and is recent enough gets there. */
async function serverIntoCache(make: Route["make"], env: Environment): Promise<ServerProgram> {
  const path = await intoCache("nats-server", env, async (folder) => {
    const program = await make(folder);
    await serverAt(program, env);
    return program;
  });
  return serverAt(path, env);
}

function serverRoutes(env: Environment): readonly Route[] {
  return [
    {
      obstacle: async () => ((await hasGo(env)) ? undefined : "`go` is not on the PATH"),
      intent: `building nats-server ${serverVersion} with Go, a minute or two`,
      make: (folder) => goInstall(serverModule, "nats-server", folder, env),
    },
    {
      obstacle: () => missingForDebian(env),
      intent: "fetching nats-server from Debian's unstable distribution",
      make: (folder) => debianProgram("nats-server", folder, env),
    },
  ];
}

function whatToType(failures: readonly string[]): string {
  return `no nats-server of ${minimumServerVersion} or later is here, and none could be provided: ${failures.join("; ")}.
Install one, then start again:
  macOS    brew install nats-server
  Windows  choco install nats-server
  Go       go install ${serverModule}
  archive  unpack one of https://github.com/nats-io/nats-server/releases and set HOLDPOINT_NATS_SERVER to its nats-server
Or run one apart with the variables that nats.conf lists, and set NATS_URL to it:
  Docker   docker run --network host --env-file nats.env -v ./nats.conf:/nats.conf -v holdpoint:/data nats:${serverVersion} -c /nats.conf`;
}
