/** Answering requests on sessions: every one gets an answer, or is somebody else's. Malformed input is a typed error. */
import { HoldpointError } from "@holdpoint/errors";
import { parseJson } from "@holdpoint/eventsourcing";
import {
  type Episode,
  filters,
  parseRpcSubject,
  type Problem,
  type Role,
  seedSubject,
  Episode as EpisodeSchema,
} from "@holdpoint/schemas";
import { keyOf } from "@holdpoint/session";
import * as z from "zod";
import type { Admission, WhileClosed } from "./admission.ts";
import type { IncomingRequest, Messenger } from "./messenger.ts";
import type { Siblings } from "./siblings.ts";

export interface Method<Body> {
  readonly body: z.ZodType<Body>;
  readonly whileClosed: WhileClosed;
  /** Why a prepare waits for it while it is in flight; absent: it does not. */
  readonly blocks?: string;
  /** Whether it makes the session that it is about, or re-binds one. */
  readonly seeds?: boolean;
  /**
   * Whether it ends the session that it is about. It also reaches a session whose first seed is in flight, and stops or awaits that
   * itself; what is held of the episode is called off.
   */
  readonly ends?: boolean;
  readonly handle: (episode: Episode, body: Body) => Promise<object>;
}

/** A method with the type of its body forgotten: it parses for itself. */
export interface AnyMethod extends Omit<Method<unknown>, "body" | "handle"> {
  readonly run: (episode: Episode, body: unknown) => Promise<object>;
}

/** @throws HoldpointError `invalid_request` from `run`, where the body is not what the method takes */
export function method<Body>({ body, handle, ...rest }: Method<Body>): AnyMethod {
  return {
    ...rest,
    run: async (episode, value) => {
      const parsed = body.safeParse(value);
      if (parsed.success) return handle(episode, parsed.data);
      throw new HoldpointError("invalid_request", z.prettifyError(parsed.error));
    },
  };
}

export interface RpcServerOptions {
  readonly messenger: Messenger;
  readonly run: string;
  readonly role: Role;
  readonly instance: string;
  readonly admission: Admission;
  readonly worker: string;
  readonly siblings: Siblings;
  readonly holds: (episode: Episode) => boolean;
  readonly methods: Readonly<Record<string, AnyMethod>>;
  /** A request was refused as malformed. */
  readonly refused: (subject: string, problem: Problem) => void;
  /** A method threw what is no `HoldpointError`: its caller is not told what. */
  readonly trouble: (what: string, error: unknown) => void;
}

/** What the sender can only mend by sending something else. */
const malformed: ReadonlySet<string> = new Set(["invalid_request", "rollout_id_required"]);

const Addressed = z.looseObject({ to: z.string().optional(), worker: z.string().optional() });

export class RpcServer {
  readonly #options: RpcServerOptions;
  readonly #subscriptions: { stop(): void }[] = [];
  /** Of seeds that are being passed on: whoever they go to may not have them yet. */
  readonly #passing = new Set<{ readonly key: string }>();

  constructor(options: RpcServerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { messenger, run, role, instance } = this.#options;
    const handle = (request: IncomingRequest) => void this.#answer(request);
    this.#subscriptions.push(await messenger.subscribe(filters.rpcOf(run, role), handle));
    this.#subscriptions.push(await messenger.subscribe(seedSubject(run, role, instance), handle));
  }

  stop(): void {
    for (const subscription of this.#subscriptions) subscription.stop();
  }

  async #answer(request: IncomingRequest): Promise<void> {
    try {
      const data = await this.#dispatch(request);
      if (data !== undefined) request.respond(JSON.stringify({ ok: true, data }));
    } catch (error) {
      const problem = problemOf(error);
      if (!HoldpointError.is(error)) this.#options.trouble(`${request.subject} was not answered as it should`, error);
      if (malformed.has(problem.code)) this.#options.refused(request.subject, problem);
      request.respond(JSON.stringify({ ok: false, problem }));
    }
  }

  /** @returns undefined where the request is for somebody else */
  async #dispatch({ subject, data }: IncomingRequest): Promise<object | undefined> {
    const json = parseJson(data);
    if (!json.ok) throw new HoldpointError("invalid_request", `the body is ${json.why}; expected a JSON object`);
    const { episode, name, isMine } = this.#address(subject, json.value);
    const isHere = this.#isHere(episode);
    const { to, worker } = Addressed.catch({}).parse(json.value);
    if (!this.#isMeant(to ?? (isMine || isHere ? this.#options.instance : undefined), worker)) return undefined;
    if (worker !== undefined && name === "holder") return { holds: isHere };
    const known = this.#methodOf(episode, name);
    if (isHere || worker !== undefined) return this.#perform(episode, known, json.value);
    return this.#place(episode, known, json.value);
  }

  #methodOf(episode: Episode, name: string): AnyMethod {
    const known = this.#options.methods[name];
    if (known === undefined) throw this.#unknownMethod(name);
    this.#options.admission.check(episode);
    return known;
  }

  #isMeant(instance: string | undefined, worker: string | undefined): boolean {
    const own = this.#options;
    return instance === own.instance && (worker === undefined || worker === own.worker);
  }

  /** Whether this worker holds the session, is making it, or will. */
  #isHere(episode: Episode): boolean {
    return this.#options.holds(episode) || this.#options.admission.isSeeding(episode);
  }

  /** @returns the reply of the worker that it was passed on to; undefined where another one answers by itself */
  async #place(episode: Episode, known: AnyMethod, body: unknown): Promise<object | undefined> {
    const { siblings } = this.#options;
    const place = await siblings.place(episode);
    if (place.type === "elsewhere") return undefined;
    if (place.type === "here") return this.#perform(episode, known, body);
    if (known.seeds === true) return this.#pass(place.worker, episode, body);
    const isOnItsWay = [...this.#passing].some(({ key }) => key === keyOf(episode));
    throw known.ends === true && isOnItsWay ? onItsWay(episode) : noSession(episode);
  }

  async #pass(worker: string, episode: Episode, body: unknown): Promise<object> {
    const passing = { key: keyOf(episode) };
    this.#passing.add(passing);
    try {
      return await this.#options.siblings.forward(worker, { episode, body: z.looseObject({}).parse(body) });
    } finally {
      this.#passing.delete(passing);
    }
  }

  #perform(episode: Episode, known: AnyMethod, body: unknown): Promise<object> {
    const { seeds = false, ends = false } = known;
    const isThere = seeds || (ends ? this.#isHere(episode) : this.#options.holds(episode));
    if (!isThere) throw noSession(episode);
    if (ends) this.#options.admission.callOff(episode);
    return this.#admit(episode, known, body);
  }

  /** `isMine`: the subject names this instance. */
  #address(subject: string, body: unknown) {
    const address = parseRpcSubject(subject);
    if (address?.kind === "call") return { episode: address.episode, name: address.method, isMine: false };
    const episode = EpisodeSchema.safeParse(body);
    if (address !== undefined && episode.success) return { episode: episode.data, name: "seed", isMine: true };
    throw new HoldpointError("rollout_id_required", `expected a rollout and an attempt in the body of ${subject}`);
  }

  #admit(episode: Episode, known: AnyMethod, body: unknown): Promise<object> {
    const { admission, holds } = this.#options;
    const { whileClosed, blocks, seeds = false } = known;
    const isFirstSeed = () => seeds && !holds(episode);
    const entrance = { whileClosed, isFirstSeed, ...(blocks !== undefined && { blocks }) };
    return admission.enter(episode, entrance, () => known.run(episode, body));
  }

  #unknownMethod(name: string): HoldpointError {
    const names = Object.keys(this.#options.methods).join(", ");
    return new HoldpointError("invalid_request", `no method ${name}; a ${this.#options.role} server has ${names}`);
  }
}

function noSession({ rollout, attempt }: Episode): HoldpointError {
  return new HoldpointError("not_found", `no session of ${rollout}, attempt ${attempt}, is here; seed it first`, {
    details: { rollout, attempt },
  });
}

function onItsWay({ rollout, attempt }: Episode): HoldpointError {
  const words = `the seed of ${rollout}, attempt ${attempt}, is on its way to the worker that makes it: ask again`;
  return new HoldpointError("unavailable", words, { details: { rollout, attempt } });
}

/**
 * An error as it travels, and as it stands in the log. What is not a `HoldpointError` is a bug, of ours or of a hook, and may quote a
 * secret: its text goes to `trouble` and nowhere else.
 */
export function problemOf(error: unknown): Problem {
  if (!HoldpointError.is(error))
    return { code: "unavailable", message: "internal error: the log of the process says which" };
  const { code, message, details } = error;
  return { code, message, ...(Object.keys(details).length > 0 && { details: { ...details } }) };
}
