"""A resources server in another language: what it knows of Holdpoint is what `schemas/` and `docs/protocol.md` say.

Its sessions count: the tool `add` takes {"by": n}, and verify says whether the count has come to the seed's target. It has one
worker, and leaves it to the coordinator to end a lease.
"""

import asyncio
import json
import os
import secrets
from dataclasses import dataclass, field

import nats
from gate import Gate
from log import Log, content, digest, key


class Problem(Exception):
    """An error of the closed set, as it travels."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Session:
    rollout: str
    attempt: int
    session_id: str
    seed: dict
    claimed: bool = True
    count: int = 0
    results: dict = field(default_factory=dict)  # "turn/index" to the content of its result
    last: str | None = None

    def copy(self, **changes: object) -> "Session":
        return Session(**{**self.__dict__, "results": dict(self.results), **changes})

    def digest(self) -> str:
        return digest(json.dumps([self.session_id, self.seed["digest"], self.count, len(self.results), self.last]))

    def edges(self) -> dict:
        return {"tools": {"received": len(self.results), "last": self.last}}


class Counter:
    def __init__(self, run: str, log: Log) -> None:
        self.run = run
        self.log = log
        self.gate = Gate("resources")
        self.live: dict[str, Session] = {}
        self.fixed: dict[str, dict[str, Session]] = {}
        self.pending: dict[str, dict[str, Session]] = {}
        self.in_flight = 0
        self.obeying = False

    # What the log says, in the order of the stream.

    def apply(self, message) -> None:
        for event in message.events:
            if message.subject == self.log.control:
                self.gate.control(event["type"], event["data"], message.sequence)
                self.apply_control(event["type"], event["data"])
            else:
                self.apply_own(event["type"], event["data"])

    def apply_control(self, kind: str, data: dict) -> None:
        checkpoint = data.get("checkpointId")
        if kind == "participants.asked" and data["operation"] == "capture":
            self.fixed[checkpoint] = {}
        elif kind == "participants.asked" and data["operation"] == "restore":
            self.pending[checkpoint] = {}
        elif kind == "restore.installed":
            self.live.update(self.pending.pop(checkpoint, {}))
        elif kind == "restore.failed":
            self.pending.pop(checkpoint, None)
        elif kind == "checkpoint.releasing":
            for dropped in data["dropped"]:
                self.fixed.pop(dropped, None)

    def apply_own(self, kind: str, data: dict) -> None:
        if kind == "participant.answered":
            self.gate.answered(data)
        elif kind == "session.seeded":
            known = self.live.get(key(data))
            fresh = Session(data["rollout"], data["attempt"], data["sessionId"], data["seed"])
            self.live[key(data)] = fresh if known is None else known.copy(claimed=True)
        elif kind == "tool.finished":
            session = self.live[key(data)]
            session.count += data["change"]["by"]
            session.results[f"{data['turn']}/{data['index']}"] = data["result"]
            session.last = data["result"]["digest"]
        elif kind == "session.captured":
            self.fixed[data["checkpointId"]][key(data)] = self.live[key(data)].copy()
        elif kind == "session.restored":
            origin = self.fixed[data["source"]][f"{data['rollout']}/{data['from']}"]
            self.pending[data["checkpointId"]][key(data)] = origin.copy(attempt=data["attempt"], claimed=False)
        elif kind in ("session.closed", "session.retired"):
            self.live.pop(key(data), None)

    # What it is asked over rpc.

    async def answer(self, message) -> None:
        try:
            data = await self.dispatch(message)
            reply = None if data is None else {"ok": True, "data": data}
        except Problem as problem:
            reply = {"ok": False, "problem": {"code": problem.code, "message": str(problem)}}
        if reply is not None:
            await message.respond(json.dumps(reply).encode())

    async def dispatch(self, message) -> dict | None:
        try:
            body = json.loads(message.data)
        except ValueError:
            raise Problem("invalid_request", "expected a JSON object") from None
        tokens = message.subject.split(".")
        if tokens[3] == "seed":
            if not isinstance(body.get("rollout"), str) or not isinstance(body.get("attempt"), int):
                raise Problem("rollout_id_required", "expected a rollout and an attempt")
            return await self.seed({"rollout": body["rollout"], "attempt": body["attempt"]}, body)
        episode = {"rollout": tokens[3], "attempt": int(tokens[4])}
        if body.get("to", "main" if key(episode) in self.live else None) != "main":
            return None  # for another instance
        methods = {"seed": self.seed, "tool": self.tool, "verify": self.verify, "close": self.close}
        if tokens[6] not in methods:
            raise Problem("invalid_request", f"no method {tokens[6]}; there are {', '.join(methods)}")
        return await methods[tokens[6]](episode, body)

    async def admitted(self, episode: dict) -> None:
        """Held while a checkpoint is open; a held request is not in flight."""
        while self.gate.closed is not None:
            await self.log.changed()
        self.check(episode)

    def check(self, episode: dict) -> None:
        if self.gate.marks.get(episode["rollout"], -1) >= episode["attempt"]:
            raise Problem("stale_attempt", "that attempt was retired, or another has taken its place")

    def session(self, episode: dict) -> Session:
        if key(episode) not in self.live:
            raise Problem("not_found", "there is no such session: seed it first")
        return self.live[key(episode)]

    async def seed(self, episode: dict, body: dict) -> dict:
        await self.admitted(episode)
        self.in_flight += 1
        try:
            known = self.live.get(key(episode))
            seed = content(json.dumps(body["seed"], sort_keys=True))
            if known is not None and known.seed["digest"] != seed["digest"]:
                raise Problem("session_conflict", "that session was seeded with something else")
            if known is None or not known.claimed:
                named = {**episode, "sessionId": body["sessionId"], "seed": seed, "sandbox": None}
                await self.log.append([{"type": "session.seeded", "data": named}])
        finally:
            self.in_flight -= 1
        return {"terms": {"verify": "replay"}, "restart": None}

    async def tool(self, episode: dict, body: dict) -> dict:
        self.check(episode)
        self.session(episode)
        await self.admitted(episode)
        self.in_flight += 1
        try:
            return {"result": await self.call(episode, body)}
        finally:
            self.in_flight -= 1

    async def call(self, episode: dict, body: dict) -> dict:
        """By its name a call is done once. It changes nothing but this state, so its end is all that the log has to hold."""
        async with self.log.turn(key(episode)):
            session = self.session(episode)
            named = {"turn": body["turn"], "index": body["index"]}
            known = session.results.get(f"{body['turn']}/{body['index']}")
            if known is not None:
                return known
            by = json.loads(body["arguments"]).get("by", 0) if body["name"] == "add" else 0
            result = content(f"the count is {session.count + by} after {len(session.results) + 1} calls")
            finished = {**episode, **named, "execution": secrets.token_hex(8), "result": result, "change": {"by": by}}
            await self.log.append([{"type": "tool.finished", "data": finished}])
            return result

    async def verify(self, episode: dict, _body: dict) -> dict:
        self.check(episode)
        session = self.session(episode)
        target = json.loads(session.seed["text"])["target"]
        return {"verdict": content(json.dumps({"reward": 1 if session.count == target else 0}))}

    async def close(self, episode: dict, _body: dict) -> dict:
        if key(episode) in self.live:
            await self.log.append([{"type": "session.closed", "data": episode}])
        return {}

    # What the control subject asks, one after the other, each until its answer is in the log.

    async def obey_all(self) -> None:
        if self.obeying:
            return
        self.obeying = True
        while (asked := self.gate.next()) is not None:
            sequence, ask = asked
            before, answer = await self.obey(sequence, ask)
            named = {"asked": sequence, "operation": ask["operation"], "checkpointId": ask["checkpointId"], **answer}
            if self.gate.owes(sequence):
                await self.log.append([*before, {"type": "participant.answered", "data": named}], urgent=True)
        self.obeying = False

    async def obey(self, sequence: int, ask: dict) -> tuple[list, dict]:
        operation = ask["operation"]
        if operation == "prepare":
            while self.in_flight > 0 and self.gate.owes(sequence):
                await self.log.changed()
            held = [{"rollout": one.rollout, "attempt": one.attempt} for one in self.live.values()]
            return [], {"blockers": [], "blockerCount": 0, "restarts": [], "continued": held}
        if operation == "capture":
            return self.capture(sequence, ask)
        if operation == "restore":
            return self.restore(ask)
        if operation == "retire":
            marks = {one["rollout"]: one["attempt"] for one in ask.get("rollouts", [])}
            over = [one for one in self.live.values() if one.attempt <= marks.get(one.rollout, -1)]
            return [retired(one) for one in over], {}
        return [], {}

    def capture(self, sequence: int, ask: dict) -> tuple[list, dict]:
        scope = [self.live[key(one)] for one in ask.get("scope", []) if key(one) in self.live]
        events = []
        for one in scope:
            named = {"rollout": one.rollout, "attempt": one.attempt, "checkpointId": ask["checkpointId"]}
            data = {**named, "digest": one.digest(), "edges": one.edges(), "asked": sequence}
            events.append({"type": "session.captured", "data": data})
        return events, {"digest": holding(scope), "sessions": len(scope)}

    def restore(self, ask: dict) -> tuple[list, dict]:
        held = self.fixed.get(ask["source"], {})
        events, installed = [], []
        for one in ask.get("assignments", []):
            origin = held.get(f"{one['rollout']}/{one['from']}")
            if origin is None:
                continue
            episode = {"rollout": one["rollout"], "attempt": one["to"]}
            named = {"source": ask["source"], "checkpointId": ask["checkpointId"], "digest": origin.digest()}
            events.append({"type": "session.restored", "data": {**episode, "from": one["from"], **named}})
            installed.append(episode)
        return events, {"digest": holding(held.values()), "sessions": len(held), "installed": installed}


def retired(session: Session) -> dict:
    return {"type": "session.retired", "data": {"rollout": session.rollout, "attempt": session.attempt}}


def holding(sessions) -> str:
    return digest("\n".join(sorted(f"{one.rollout}/{one.attempt} {one.digest()}" for one in sessions)))


async def main() -> None:
    run = os.environ["HOLDPOINT_RUN"]
    user = os.environ["NATS_USER"]
    connection = await nats.connect(
        os.environ["NATS_URL"],
        user=user,
        password=os.environ["NATS_PASSWORD"],
        inbox_prefix=f"_INBOX_{user}".encode(),
        max_reconnect_attempts=-1,
    )
    log = Log(connection, run, f"hp.{run}.log.resources.main.0")
    counter = Counter(run, log)
    announced = {"mode": "exported", "endpoint": None, "lastAtMs": None}
    await log.claim([{"type": "participant.announced", "data": announced}])
    tasks = set()

    def soon(work) -> None:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def serve(message) -> None:
        soon(counter.answer(message))

    await log.follow(counter.apply, lambda: soon(counter.obey_all()), lambda: counter.gate.fixed is not None)
    await connection.subscribe(f"hp.{run}.rpc.*.*.resources.*", cb=serve)
    await connection.subscribe(f"hp.{run}.rpc.seed.resources.main", cb=serve)
    print("counter serves", flush=True)
    await log.fenced.wait()
    raise SystemExit(3)


asyncio.run(main())
