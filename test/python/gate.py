"""What a participant may do now, as the control subject and its own answers tell it."""


class Gate:
    def __init__(self, role: str) -> None:
        self.role = role
        self.closed: str | None = None  # the id for which admission is closed
        self.fixed: tuple[str, int] | None = None  # captured, and its cut does not stand yet: nothing may be appended
        self.asks: list[tuple[int, dict]] = []  # what is owed an answer, oldest first
        self.marks: dict[str, int] = {}  # by rollout, the highest attempt that is refused
        self.stale: set[str] = set()
        self.assigned: list[dict] = []

    def next(self) -> tuple[int, dict] | None:
        """What to obey now. While it is fixed only another capture: anything else would break the cut."""
        for sequence, ask in self.asks:
            if self.fixed is None or (ask["operation"] == "capture" and ask["checkpointId"] == self.fixed[0]):
                return sequence, ask
        return None

    def owes(self, sequence: int) -> bool:
        return any(one == sequence for one, _ in self.asks)

    def answered(self, data: dict) -> None:
        ask = next((ask for sequence, ask in self.asks if sequence == data["asked"]), None)
        if ask is None:
            return
        self.asks = [one for one in self.asks if one[0] != data["asked"]]
        if ask["operation"] in ("proceed", "resume"):
            self.open(ask["checkpointId"])
        if ask["operation"] == "capture" and "problem" not in data:
            self.fixed = (ask["checkpointId"], ask["command"])

    def control(self, kind: str, data: dict, sequence: int) -> None:
        if kind == "participants.asked":
            if self.role in data["roles"]:
                self.asked(data, sequence)
        elif kind == "rollouts.marked":
            for one in data["rollouts"]:
                self.mark(one["rollout"], one["attempt"])
        elif kind == "restore.started":
            self.assigned = data["assignments"]
        elif kind == "checkpoint.resumed":
            self.resumed(data["checkpointId"])
        elif kind in ENDS:
            self.ended(kind, data)

    def asked(self, ask: dict, sequence: int) -> None:
        operation, checkpoint = ask["operation"], ask["checkpointId"]
        if checkpoint in self.stale and operation not in AFTERWARDS:
            return
        if operation in ("prepare", "capture"):  # a later one of the same id takes the place of an earlier one
            self.asks = [
                one for one in self.asks if (one[1]["operation"], one[1]["checkpointId"]) != (operation, checkpoint)
            ]
        self.asks.append((sequence, ask))
        if operation in ("prepare", "restore"):
            self.closed = checkpoint
        if operation == "capture":
            self.fixed = None

    def ended(self, kind: str, data: dict) -> None:
        command = data["command"]
        if command is not None:
            self.asks = [one for one in self.asks if one[1]["command"] != command]
        if kind in ("checkpoint.captured", "command.failed") and self.fixed is not None and self.fixed[1] == command:
            self.fixed = None
        if kind in ("checkpoint.proceeded", "resume.ended"):
            self.open(data["checkpointId"])
        if kind == "restore.installed":
            for one in self.assigned:
                self.mark(one["rollout"], one["to"] - 1)
        if kind in ("restore.installed", "restore.failed"):
            self.assigned = []
        if kind == "rollouts.forgotten":
            for rollout in data["rollouts"]:
                self.marks.pop(rollout, None)

    def resumed(self, checkpoint: str) -> None:
        """Admission stays closed until the ask to resume is answered: callees open before their callers."""
        self.stale.add(checkpoint)
        self.asks = [one for one in self.asks if one[1]["checkpointId"] != checkpoint or one[1]["operation"] in AFTERWARDS]
        if self.fixed is not None and self.fixed[0] == checkpoint:
            self.fixed = None

    def open(self, checkpoint: str) -> None:
        if self.closed == checkpoint:
            self.closed = None

    def mark(self, rollout: str, attempt: int) -> None:
        self.marks[rollout] = max(attempt, self.marks.get(rollout, -1))


AFTERWARDS = ("resume", "release")
"""What may be asked of an id that is over."""

ENDS = (
    "checkpoint.prepared",
    "checkpoint.captured",
    "checkpoint.committed",
    "checkpoint.proceeded",
    "checkpoint.released",
    "command.failed",
    "resume.ended",
    "restore.installed",
    "restore.failed",
    "rollouts.retired",
    "rollouts.forgotten",
)
"""What ends a command, so that none of its asks is owed an answer any more."""
