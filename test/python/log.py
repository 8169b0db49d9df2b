"""A process' own subject of the stream, and the control subject beside it."""

import asyncio
import hashlib
import json
import secrets
from collections import defaultdict
from dataclasses import dataclass

from nats.js.api import ConsumerConfig, DeliverPolicy
from nats.js.errors import APIError, NotFoundError

WRONG_LAST_SEQUENCE = 10071
CONTROL_PLANE = {
    "participant.announced",
    "participant.left",
    "participant.answered",
    "session.captured",
    "session.restored",
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def content(text: str) -> dict:
    return {"digest": digest(text), "bytes": len(text.encode()), "text": text}


def key(episode: dict) -> str:
    return f"{episode['rollout']}/{episode['attempt']}"


@dataclass
class Message:
    subject: str
    sequence: int
    events: list


class Log:
    """Appends under the last sequence that it knows, so that whoever was replaced cannot write (L1)."""

    def __init__(self, connection, run: str, subject: str) -> None:
        self.control = f"hp.{run}.control"
        self.subject = subject
        self.fenced = asyncio.Event()
        self._js = connection.jetstream()
        self._stream = f"HP_{run}"
        self._incarnation = f"py-{secrets.token_hex(8)}"
        self._end = 0
        self._applied = 0
        self._lock = asyncio.Lock()
        self._turns: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._change = asyncio.Event()
        self._is_fixed = lambda: False

    def turn(self, name: str) -> asyncio.Lock:
        return self._turns[name]

    async def claim(self, events: list) -> None:
        """Takes the subject over: whoever wrote it before is fenced."""
        self._end = await self._last()
        await self.append(events, urgent=True, applied=False)

    async def changed(self) -> None:
        """Returns when something was applied, or it is time to look again."""
        event = self._change
        try:
            await asyncio.wait_for(event.wait(), 0.05)
        except asyncio.TimeoutError:
            pass

    async def append(self, events: list, urgent: bool = False, applied: bool = True) -> None:
        """Returns once the events are acknowledged, and applied. What is not urgent waits while a capture has fixed the state."""
        while not urgent and self._is_fixed():
            await self.changed()
        async with self._lock:
            self._end = await self._publish(events)
            sequence = self._end
        while applied and self._applied < sequence:
            await self.changed()

    async def follow(self, apply, obey, is_fixed) -> None:
        """Applies both subjects from the start of the stream, in its order; returns when the announcement was applied."""
        self._is_fixed = is_fixed
        announced = self._end

        async def deliver(raw) -> None:
            sequence = raw.metadata.sequence.stream
            apply(Message(raw.subject, sequence, json.loads(raw.data)["events"]))
            self._applied = sequence
            before, self._change = self._change, asyncio.Event()
            before.set()
            if sequence >= announced:
                obey()

        config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL, filter_subjects=[self.control, self.subject])
        await self._js.subscribe("", stream=self._stream, ordered_consumer=True, config=config, cb=deliver)
        while self._applied < announced:
            await self.changed()

    async def _publish(self, events: list) -> int:
        body = {"schema": 1, "incarnation": self._incarnation, "events": events}
        headers = {"Nats-Msg-Id": secrets.token_hex(11), "Nats-Expected-Last-Subject-Sequence": str(self._end)}
        if any(event["type"] in CONTROL_PLANE for event in events):
            headers["Hp-Control"] = "1"
        while True:
            try:
                acknowledgement = await self._js.publish(self.subject, json.dumps(body).encode(), headers=headers)
                return acknowledgement.seq
            except APIError as error:
                if error.err_code == WRONG_LAST_SEQUENCE:
                    await self._lost_or_fenced(headers["Nats-Msg-Id"])
                    return self._end
                await asyncio.sleep(0.1)
            except Exception:  # no answer: whether it is stored the next try will tell
                await asyncio.sleep(0.1)

    async def _lost_or_fenced(self, message_id: str) -> None:
        """The acknowledgement of what we wrote was lost, or somebody else has written: then this process is over."""
        last = await self._js.get_last_msg(self._stream, self.subject)
        if (last.headers or {}).get("Nats-Msg-Id") != message_id:
            self.fenced.set()
            await asyncio.Event().wait()
        self._end = last.seq

    async def _last(self) -> int:
        try:
            return (await self._js.get_last_msg(self._stream, self.subject)).seq
        except NotFoundError:
            return 0
