/**
 * The `dir` provider: a sandbox is a plain folder, a snapshot a copy of it.
 *
 * It needs nothing and isolates nothing: what runs in a sandbox runs as this process does, sees the machine, and may leave
 * the folder. It is for trusted workloads and for tests. Below `root`:
 *
 *     sandboxes/<id>/       the tree itself
 *     snapshots/<id>/       see snapshot-store.ts
 *
 * Several processes may share a root, so long as each works on sandboxes of its own.
 */
import { HoldpointError } from "@holdpoint/errors";
import { Token } from "@holdpoint/schemas";
import { mkdir, readdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { listConfined, readConfined, resolveInside, writeConfined } from "./confined.ts";
import { startExec } from "./exec.ts";
import { Gate } from "./gate.ts";
import { isTemporary, leftoversIn, removeTree, removeWhole, thisProcess, withTemporary } from "./leftovers.ts";
import { continueAll, killOrphans, type Marked, send, sendAll } from "./processes.ts";
import type {
  Capabilities,
  ExecRequest,
  ExecResult,
  ListedFile,
  SandboxProvider,
  SandboxStatus,
  SnapshotReference,
  StoredSnapshot,
  TakenSnapshot,
} from "./provider.ts";
import { exists, renameToNew, SnapshotStore } from "./snapshot-store.ts";
import { copyTree } from "./tree.ts";

const capabilities: Capabilities = { copyOnWrite: false, freeze: false, memory: false, isolation: "none" };

/** What this process knows of a sandbox that it has touched. */
interface Live {
  readonly gate: Gate;
  /** Ids of process groups of commands that have not ended. */
  readonly groups: Set<number>;
  /** Whether a command was started in it: only then can there be strays. */
  ran: boolean;
  frozen: boolean;
}

/**
 * Opens the provider, and first kills what commands of dead processes have left running below `root`.
 *
 * @param options.root absolute; made where it is not there
 * @throws HoldpointError `invalid_request` where `root` is relative
 */
export async function dirProvider({ root }: { readonly root: string }): Promise<SandboxProvider> {
  if (!isAbsolute(root)) {
    throw new HoldpointError("invalid_request", `root: expected an absolute path, found ${JSON.stringify(root)}`);
  }
  const folders = { sandboxes: join(root, "sandboxes"), snapshots: join(root, "snapshots") };
  await mkdir(folders.sandboxes, { recursive: true });
  await mkdir(folders.snapshots, { recursive: true });
  await killOrphans(await realpath(root));
  return new DirProvider(await realpath(folders.sandboxes), await realpath(folders.snapshots));
}

class DirProvider implements SandboxProvider {
  readonly name = "dir";
  readonly capabilities = capabilities;
  readonly #sandboxes: string;
  readonly #snapshots: string;
  readonly #store: SnapshotStore;
  readonly #live = new Map<string, Live>();

  constructor(sandboxes: string, snapshots: string) {
    this.#sandboxes = sandboxes;
    this.#snapshots = snapshots;
    this.#store = new SnapshotStore(snapshots, this.name);
  }

  async create(sandboxId: string, template: string): Promise<void> {
    const target = this.#pathOf(sandboxId);
    const isFolder = isAbsolute(template) && (await stat(template).catch(() => undefined))?.isDirectory() === true;
    if (!isFolder) {
      throw new HoldpointError(
        "invalid_request",
        `template: expected the absolute path of a folder, found ${template}`,
      );
    }
    await this.#make(target, sandboxId, (temporary) => copyTree(template, temporary));
  }

  async list(): Promise<readonly string[]> {
    return (await readdir(this.#sandboxes)).filter((name) => !isTemporary(name)).toSorted();
  }

  async status(sandboxId: string): Promise<SandboxStatus> {
    if (!(await exists(this.#pathOf(sandboxId)))) return { state: "absent", execs: 0 };
    const live = this.#live.get(sandboxId);
    return { state: live?.frozen === true ? "frozen" : "running", execs: live?.groups.size ?? 0 };
  }

  async delete(sandboxId: string): Promise<void> {
    const folder = this.#pathOf(sandboxId);
    const live = this.#liveOf(sandboxId);
    await live.gate.close(); // so that nothing is started after all was killed
    try {
      for (const group of live.groups) send(-group, "SIGKILL");
      if (live.ran) await sendAll(ofFolder(folder), "SIGKILL");
      await removeWhole(this.#sandboxes, sandboxId);
      this.#live.delete(sandboxId);
    } finally {
      live.gate.open(); // who waited finds no sandbox
      if (live.frozen) live.gate.open();
    }
  }

  async exec(sandboxId: string, request: ExecRequest): Promise<ExecResult> {
    const live = await this.#find(sandboxId);
    const running = await live.gate.pass(async () => {
      const folder = await this.#folderOf(sandboxId);
      const started = startExec(folder, await resolveInside(folder, request.cwd ?? "."), request);
      live.ran = true;
      if (started.pid > 0) live.groups.add(started.pid);
      return started;
    });
    try {
      return await running.result;
    } finally {
      live.groups.delete(running.pid);
    }
  }

  async readFile(sandboxId: string, path: string): Promise<Uint8Array> {
    return readConfined(await this.#folderOf(sandboxId), path);
  }

  async writeFile(sandboxId: string, path: string, content: string | Uint8Array): Promise<void> {
    const live = await this.#find(sandboxId);
    await live.gate.pass(async () => {
      await writeConfined({ root: await this.#folderOf(sandboxId), spare: this.#sandboxes }, path, content);
    });
  }

  async listFiles(sandboxId: string, path = "."): Promise<readonly ListedFile[]> {
    return listConfined(await this.#folderOf(sandboxId), path);
  }

  async upload(sandboxId: string, from: string, path: string): Promise<void> {
    await this.writeFile(sandboxId, path, await readFile(from));
  }

  async download(sandboxId: string, path: string, to: string): Promise<void> {
    await writeFile(to, await this.readFile(sandboxId, path));
  }

  async freeze(sandboxId: string): Promise<void> {
    const live = await this.#find(sandboxId);
    if (live.frozen) return;
    live.frozen = true;
    await live.gate.close();
    await sendAll(ofFolder(this.#pathOf(sandboxId)), "SIGSTOP");
  }

  async thaw(sandboxId: string): Promise<void> {
    const live = await this.#find(sandboxId);
    if (!live.frozen) return;
    live.frozen = false;
    continueAll(ofFolder(this.#pathOf(sandboxId)));
    live.gate.open();
  }

  async snapshot(sandboxId: string, snapshotId: string): Promise<TakenSnapshot> {
    requireToken("snapshot", snapshotId);
    const live = await this.#find(sandboxId);
    const folder = this.#pathOf(sandboxId);
    await live.gate.close();
    try {
      // Nothing runs between commands, so that there is nothing to look for; strays are noticed by what they write.
      if (live.groups.size > 0) await sendAll(ofFolder(folder), "SIGSTOP");
      return await this.#store.take(await this.#folderOf(sandboxId), snapshotId);
    } finally {
      if (live.groups.size > 0 && !live.frozen) continueAll(ofFolder(folder));
      live.gate.open();
    }
  }

  async makeDurable(snapshotId: string): Promise<void> {
    requireToken("snapshot", snapshotId);
    await this.#store.makeDurable(snapshotId);
  }

  async validate(reference: SnapshotReference): Promise<void> {
    requireToken("snapshot", reference.snapshotId);
    await this.#store.validate(reference);
  }

  async fork(reference: SnapshotReference, sandboxId: string): Promise<void> {
    requireToken("snapshot", reference.snapshotId);
    const target = this.#pathOf(sandboxId);
    await this.#make(target, sandboxId, (temporary) => this.#store.copyOut(reference, temporary));
  }

  listSnapshots(): Promise<readonly StoredSnapshot[]> {
    return this.#store.list();
  }

  async deleteSnapshot(snapshotId: string): Promise<void> {
    requireToken("snapshot", snapshotId);
    await this.#store.delete(snapshotId);
  }

  async listLeftovers(): Promise<readonly string[]> {
    return [this.#sandboxes, this.#snapshots].flatMap(leftoversIn);
  }

  async removeLeftovers(): Promise<void> {
    for (const path of await this.listLeftovers()) await removeTree(path);
  }

  async close(): Promise<void> {
    for (const [, { groups }] of this.#live) for (const group of groups) send(-group, "SIGKILL");
    if (this.#live.size > 0) {
      await sendAll(
        ({ owner, folder }) => owner === thisProcess && folder.startsWith(`${this.#sandboxes}/`),
        "SIGKILL",
      );
    }
    this.#live.clear();
  }

  #pathOf(sandboxId: string): string {
    requireToken("sandbox", sandboxId);
    return join(this.#sandboxes, sandboxId);
  }

  async #folderOf(sandboxId: string): Promise<string> {
    const folder = this.#pathOf(sandboxId);
    if (await exists(folder)) return folder;
    throw new HoldpointError("not_found", `there is no sandbox ${sandboxId}`);
  }

  async #find(sandboxId: string): Promise<Live> {
    await this.#folderOf(sandboxId);
    return this.#liveOf(sandboxId);
  }

  #liveOf(sandboxId: string): Live {
    const live = this.#live.get(sandboxId) ?? { gate: new Gate(), groups: new Set(), ran: false, frozen: false };
    this.#live.set(sandboxId, live);
    return live;
  }

  #make(target: string, sandboxId: string, fill: (temporary: string) => Promise<unknown>): Promise<void> {
    return withTemporary(this.#sandboxes, async (temporary) => {
      await fill(temporary);
      await renameToNew(temporary, target, `sandbox ${sandboxId}`);
    });
  }
}

function ofFolder(folder: string): (found: Marked) => boolean {
  return (found) => found.folder === folder;
}

function requireToken(what: string, id: string): void {
  if (Token.safeParse(id).success) return;
  throw new HoldpointError(
    "invalid_request",
    `${JSON.stringify(id)} is no id of a ${what}: expected 1 to 128 of A-Z a-z 0-9 _ -`,
  );
}
