/**
 * Whether this process is still the one in its place. One that has nothing to say would learn only from its next append that a
 * successor is there, or that it was removed: the control subject says so at once.
 */
import type { Role } from "@holdpoint/schemas";
import type { Directory } from "./directory.ts";
import type { ParticipantOptions } from "./participant-options.ts";

export class Membership {
  readonly #options: Pick<ParticipantOptions, "instance" | "worker" | "incarnation" | "fenced">;
  readonly #role: Role;
  readonly #directory: Directory;
  /** `control` has said that this incarnation takes part. */
  #isMember = false;
  #isOver = false;

  constructor(
    options: Pick<ParticipantOptions, "instance" | "worker" | "incarnation" | "fenced">,
    role: Role,
    directory: Directory,
  ) {
    this.#options = options;
    this.#role = role;
    this.#directory = directory;
  }

  /** Looks at what the directory says now. */
  look(): void {
    const { instance, worker, incarnation } = this.#options;
    const members = this.#directory.of(this.#role);
    const here = members.find((member) => member.instance === instance && member.worker === worker);
    if (here?.incarnation === incarnation) this.#isMember = true;
    else if (this.#isMember) this.fenced();
  }

  /** It is not the one any more; told once. */
  fenced(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#options.fenced();
  }
}
