"""Commands to a running topology: each is one class here, from the request of another terminal to what the driver does.

A request is a line of JSON: `{"do": "scale", "unit": "count", "n": 4}`. `parse` makes the command of it, by the table
`COMMANDS`. The command's process hands it to the driver, whose actor calls `carry_out` and sends back what it answers.

It is one module of over 300 lines: all that can be asked of a run stands in one table.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from esault.control.run.sending_again import Resend
from esault.elasticity.scaling import EVERY_UNIT
from esault.errors import UsageError
from esault.value_class import value_class

if TYPE_CHECKING:
    from esault.control.run.driver import Driver

__all__ = [
    "COMMANDS",
    "Answer",
    "Answered",
    "ChangeUnit",
    "Requested",
    "RunCommand",
    "Running",
    "ScaleUnit",
    "SendDeadLetters",
    "ShowHistory",
    "ShowState",
    "ShowStatus",
    "StopTopology",
    "TakeSavepoint",
    "ThrottleUnit",
    "parse",
]

#: the newest changes, and widths of a unit, that are told of a run's history
MOST_WIDTHS = 500
#: seconds between two lines of how far a change is
PROGRESS_EVERY = 2.0
#: the kinds of values in a request, and the words for them
_KINDS = {
    str: ((str,), "a text"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    bool: ((bool,), "true or false"),
}


@value_class(frozen=True)
class Running:
    """The run, for a command."""

    driver: Driver
    #: policies by unit; the empty name stands for all others
    policies: Mapping[str, str]


@value_class(frozen=True)
class Answer:
    """A line for who asked, and what there is to say later."""

    said: dict[str, Any]
    #: asked after each step of the driver, until it gives the last line; None: `said` is the last
    then: Callable[[], dict[str, Any] | None] | None = None
    #: asked as often: a line of how far it is, now and then
    meanwhile: Callable[[], dict[str, Any] | None] = lambda: None


class RunCommand:
    """Base of the commands. A subclass is a dataclass of what the request says besides `do`.

    Fields are of type `str`, `int`, `float` or `bool`; one with a default may be left out.
    """

    #: its name in requests
    do: ClassVar[str]
    #: it waits for the end of a checkpoint that is being taken
    waits: ClassVar[bool] = False
    #: False: who asks is told that it has begun, and finds what becomes of it among the notices and in the report
    answered: ClassVar[bool] = True
    #: what the key of who asks from another machine must let him do: look, scale or run
    role: ClassVar[str] = "run"

    def carry_out(self, run: Running, now: float) -> Answer:
        """Do it, in the driver's process. Raises UsageError, and nothing is changed then."""
        raise NotImplementedError(f"{type(self).__name__} must define carry_out(run, now)")


@value_class(frozen=True)
class ShowStatus(RunCommand):
    """The run as it is; the command's own process knows."""

    do = "status"
    role = "look"


@value_class(frozen=True)
class StopTopology(RunCommand):
    """End in order, or at once; answered when the run is over, by the command's own process."""

    do = "stop"

    now: bool = False
    #: keep the last checkpoint under this name; empty: under none
    savepoint: str = ""


@value_class(frozen=True)
class ScaleUnit(RunCommand):
    """Give a unit so many sub-units. The last answer is the record of the change."""

    do = "scale"
    role = "scale"
    waits = True

    unit: str
    n: int

    def carry_out(self, run: Running, now: float) -> Answer:
        """Begin the change. Raises UsageError."""
        change = run.driver.commands.scale(self.unit, self.n, now)
        if change is None:
            return Answer({"done": True, "unchanged": True})

        def ended() -> dict[str, Any] | None:
            if change in run.driver.unchaining.dropped:
                return {
                    "error": f"the change was dropped: {run.driver.unchaining.dropped[change]}; nothing is lost, try again"
                }
            unit = run.driver.units[self.unit]  # another one where all have gone back meanwhile
            record = next((record for record in unit.changes if record.id == change), None)
            if record is None or (unit.endings.leaving and not unit.state.finishing):
                return None  # or the next request, which comes at once, would be refused
            if record.dropped:
                return {"error": f"the change was dropped: {record.dropped}; nothing is lost, try again"}
            watched_by = run.policies.get(self.unit, run.policies.get(EVERY_UNIT, "none"))
            if unit.plan.kind == "spout":  # no policy changes one
                watched_by = "none"
            return {"done": True, "watched_by": watched_by, **asdict(record)}

        said_at = now

        def progress() -> dict[str, Any] | None:
            nonlocal said_at
            on = run.driver.units[self.unit].change
            if on is None or on.id != change or on.subscales == 1 or run.driver.now < said_at + PROGRESS_EVERY:
                return None
            said_at = run.driver.now
            return {"moved": on.moved, "of": on.subscales, "moved_keys": on.moved_keys}

        return Answer({"begun": True}, ended, progress)


@value_class(frozen=True)
class ChangeUnit(RunCommand):
    """Split, merge or move one sub-unit of a unit."""

    do = "change"
    role = "scale"
    waits = True
    answered = False

    unit: str
    #: "split", "merge" or "move"
    kind: str

    def carry_out(self, run: Running, now: float) -> Answer:
        """Begin the change, of the last sub-unit on the ring. Raises UsageError."""
        run.driver.commands.change(self.unit, self.kind, None, now)
        return Answer({"begun": True})


@value_class(frozen=True)
class ThrottleUnit(RunCommand):
    """Slow a unit down for a while."""

    do = "throttle"
    role = "scale"

    unit: str
    #: tuples a second, and for how many seconds
    rate: float
    seconds: float

    def carry_out(self, run: Running, now: float) -> Answer:
        """Set the cap. Raises UsageError."""
        run.driver.commands.throttle(self.unit, self.rate, self.seconds, now)
        return Answer({"done": True})


@value_class(frozen=True)
class ShowState(RunCommand):
    """The state of a key of a unit, or of some of its keys, as it is between two batches."""

    do = "state"
    role = "look"

    unit: str
    #: as it is typed; empty: some keys
    key: str = ""
    #: of these keys, those that begin so
    prefix: str = ""
    limit: int = 20

    def carry_out(self, run: Running, now: float) -> Answer:
        """Ask the sub-units. Raises UsageError."""
        return Answer({"begun": True}, run.driver.commands.query(self.unit, self.key, self.prefix, self.limit))


@value_class(frozen=True)
class ShowHistory(RunCommand):
    """The run's changes so far, and how wide each unit has been; times are seconds since tuples began to flow."""

    do = "history"

    def carry_out(self, run: Running, now: float) -> Answer:
        """Look it up."""
        since = run.driver.running_since
        units = run.driver.units if since is not None else {}
        changes = [
            {**asdict(each), "t": max(0.0, each.at - (since or 0.0))}
            for unit in units.values()
            for each in unit.changes
        ]
        widths = {
            name: [[max(0.0, t - (since or 0.0)), n] for t, n in unit.history[-MOST_WIDTHS:]]
            for name, unit in units.items()
        }
        changes.sort(key=lambda change: change["t"])
        return Answer({"done": True, "changes": changes[-MOST_WIDTHS:], "widths": widths})


@value_class(frozen=True)
class TakeSavepoint(RunCommand):
    """Take a checkpoint and keep it under a name. The last answer says where."""

    do = "savepoint"

    name: str

    def carry_out(self, run: Running, now: float) -> Answer:
        """Have it begin. Raises UsageError."""
        return Answer({"begun": True}, run.driver.commands.savepoint(self.name))


@value_class(frozen=True)
class SendDeadLetters(RunCommand):
    """Send dead letters again, to where they failed. Answered when what came of them is durable: ids that were sent, and why others
    were not."""

    do = "send_again"

    #: JSON: a list of [id, unit, at, packed], as they stand in their files, and a fifth with what says when: run, epoch, checkpoint, time
    dead_letters: str

    def carry_out(self, run: Running, now: float) -> Answer:
        """Send them to sub-units. Raises UsageError."""
        try:
            resends = [
                Resend(str(id), str(unit), str(at), base64.b64decode(packed), *map(dict, made[:1]))
                for id, unit, at, packed, *made in json.loads(self.dead_letters)
            ]
        except (ValueError, TypeError) as error:
            raise UsageError(f"these are no dead letters: {error}") from None
        return Answer({"begun": True}, run.driver.commands.sending_again.ask(resends))


#: all commands, by the word in a request
COMMANDS: dict[str, type[RunCommand]] = {
    command.do: command
    for command in (
        ShowStatus,
        ShowState,
        ShowHistory,
        SendDeadLetters,
        ScaleUnit,
        ThrottleUnit,
        ChangeUnit,
        TakeSavepoint,
        StopTopology,
    )
}


def parse(request: Any) -> RunCommand:
    """Return the command of a request. Raises ValueError for what is none."""
    if not isinstance(request, dict):
        raise ValueError("a request is a JSON object")
    do = request.get("do")
    if not isinstance(do, str) or do not in COMMANDS:
        *most, last = COMMANDS
        raise ValueError(f"do={do!r}: it is {', '.join(most)} or {last}")
    command: Any = COMMANDS[do]
    types = get_type_hints(command)
    given: dict[str, Any] = {}
    for each in fields(command):
        allowed, words = _KINDS[types[each.name]]
        if each.name not in request and each.default is not MISSING:
            continue
        if type(request.get(each.name)) not in allowed:
            raise ValueError(f"{do} takes {each.name}, {words}")
        given[each.name] = request[each.name]
    made: RunCommand = command(**given)
    return made


@value_class(frozen=True)
class Requested:
    """Command to driver: carry this out."""

    command: RunCommand
    #: of the request, for its answers; 0: they are not waited for
    number: int = 0


@value_class(frozen=True)
class Answered:
    """Driver to command: a line for who asked."""

    number: int
    said: dict[str, Any]
    #: no more lines follow
    last: bool = True
