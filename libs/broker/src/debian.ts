/**
 * A program out of a package of Debian's unstable distribution, without a change to the system: apt runs with sources, lists
 * and cache of its own, and keeps only the machine's way to its mirror (proxies, credentials).
 */
import { HoldpointError } from "@holdpoint/errors";
import { access, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Environment, isExecutable, onPath, outputOf } from "./command.ts";

/** What signs Debian's archive, on every Debian. */
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
const distribution = "sid";
const aptTimeoutMs = 300_000;

/**
 * Fetches package `name` into `folder` and unpacks it there. To be called where `missingForDebian` names nothing.
 *
 * @returns the path of its program of the same name
 * @throws HoldpointError `unavailable` where no mirror that apt knows gives the package
 */
export async function debianProgram(name: string, folder: string, env: Environment): Promise<string> {
  const refusals: string[] = [];
  for (const mirror of await mirrors(env)) {
    try {
      return await programFrom(mirror, name, folder, env);
    } catch (error) {
      refusals.push(error instanceof Error ? error.message : String(error));
    }
  }
  const reason = refusals.length === 0 ? "apt has no source of Debian's main component" : refusals.join("; ");
  throw new HoldpointError("unavailable", reason);
}

/** What of Debian is not here, as a sentence; `undefined` where all is. */
export async function missingForDebian(env: Environment): Promise<string | undefined> {
  for (const tool of ["apt-get", "dpkg"]) {
    if ((await onPath(tool, env)).length === 0) return `\`${tool}\` is not on the PATH`;
  }
  try {
    await access(keyring);
    return undefined;
  } catch {
    return `this is not a Debian: ${keyring} is not there`;
  }
}

/** The archives that apt knows here, those for updates aside: any of them that is Debian's own has `sid` as well. */
async function mirrors(env: Environment): Promise<string[]> {
  const format = "$(IDENTIFIER) $(COMPONENT) $(RELEASE) $(REPO_URI)";
  const targets = await outputOf("apt-get", ["indextargets", "--no-release-info", "--format", format], {
    env: { ...env, LC_ALL: "C" },
    timeoutMs: aptTimeoutMs,
  });
  const uris = targets.split("\n").flatMap((line) => {
    const [identifier, component, release = "", uri] = line.split(" ");
    const isArchive = identifier === "Packages" && component === "main" && /^[a-z]+$/.test(release);
    return isArchive && uri !== undefined ? [uri] : [];
  });
  return [...new Set(uris)];
}

async function programFrom(mirror: string, name: string, folder: string, env: Environment): Promise<string> {
  const download = join(folder, "download");
  const unpacked = join(folder, "unpacked");
  await mkdir(download, { recursive: true });
  const config = await writeConfig(mirror, folder);
  const options = { env: { ...env, LC_ALL: "C" }, cwd: download, timeoutMs: aptTimeoutMs };
  await outputOf("apt-get", ["--config-file", config, "--quiet", "update"], options);
  await outputOf("apt-get", ["--config-file", config, "--quiet", "download", name], options);
  const archive = (await readdir(download)).find((file) => file.endsWith(".deb"));
  if (archive === undefined) throw new HoldpointError("unavailable", `apt-get downloaded no package of ${name}`);
  await outputOf("dpkg", ["--extract", archive, unpacked], options);
  for (const place of ["usr/bin", "usr/sbin"]) {
    if (await isExecutable(join(unpacked, place, name))) return join(unpacked, place, name);
  }
  throw new HoldpointError("unavailable", `${archive} holds no program ${name}`);
}

/** Writes apt's configuration, read after the machine's own, and the sources list it names. Returns the former's path. */
async function writeConfig(mirror: string, folder: string): Promise<string> {
  const [sources, lists, cache] = [join(folder, "sources.list"), join(folder, "lists"), join(folder, "cache")];
  await Promise.all([lists, cache].map((path) => mkdir(join(path, "partial"), { recursive: true })));
  await writeFile(sources, `deb [signed-by=${keyring} target=Packages] ${mirror} ${distribution} main\n`);
  const config = join(folder, "apt.conf");
  await writeFile(
    config,
    `#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Default-Release;
APT::Update::Error-Mode "any";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::Etc::SourceList "${sources}";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Lists "${lists}";
Dir::Cache "${cache}";
`,
  );
  return config;
}
