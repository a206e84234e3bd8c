"""Policies for errors that user code raises."""

from __future__ import annotations

import math

from esault.value_class import value_class

__all__ = ["Backoff", "ErrorPolicy", "backoff", "dead_letter", "fail", "skip"]


@value_class(frozen=True)
class Backoff:
    """Tries after waits that grow: `attempts` of them, `initial` seconds before the first, each wait `factor` times the one before it, none
    longer than `most`. A share `jitter` of each wait is left to chance. Errors that are none of `errors` are not tried again."""

    attempts: int = 5
    initial: float = 0.1
    factor: float = 2.0
    most: float = 5.0
    jitter: float = 0.5
    errors: tuple[type[BaseException], ...] = (Exception,)

    def wait(self, tries: int, chance: float) -> float:
        """Return the seconds before the next try, when there were `tries` so far; `chance` in 0 .. 1 decides the jitter."""
        # 2.0 ** 1024 is no float any more
        grown = min(self.most, self.initial * self.factor ** min(tries, 64))
        return grown * (1 - self.jitter * chance)


@value_class(frozen=True)
class ErrorPolicy:
    """After further tries in place: "fail", "skip" or "dead_letter" (to `path`)."""

    kind: str
    #: how many tries at once, or when
    retries: int | Backoff = 0
    #: of a dead letter file, JSON lines; every sub-unit appends to a file of its own beside it
    path: str | None = None

    def tries_again(self, error: BaseException, tries: int) -> bool:
        """Return whether there is another try after this error, when there were `tries` so far."""
        if isinstance(self.retries, Backoff):
            return tries < self.retries.attempts and isinstance(error, self.retries.errors)
        return tries < self.retries

    def wait(self, tries: int, chance: float) -> float:
        """Return the seconds before that try; `chance` in 0 .. 1 decides the jitter."""
        return self.retries.wait(tries, chance) if isinstance(self.retries, Backoff) else 0.0


def fail(retries: int | Backoff = 0) -> ErrorPolicy:
    """Stop the topology with the user's traceback. The default."""
    return ErrorPolicy("fail", retries)


def skip(retries: int | Backoff = 0) -> ErrorPolicy:
    """Count the tuple as an error and go on."""
    return ErrorPolicy("skip", retries)


def dead_letter(path: str, retries: int | Backoff = 0) -> ErrorPolicy:
    """Keep tuple and traceback in a JSON lines file, durable before the tuple is acked, and go on."""
    return ErrorPolicy("dead_letter", retries, str(path))


def backoff(
    attempts: int = 5,
    *,
    initial: float = 0.1,
    factor: float = 2.0,
    most: float = 5.0,
    jitter: float = 0.5,
    errors: type[BaseException] | tuple[type[BaseException], ...] = Exception,
) -> Backoff:
    """Retries after waits that grow, for `retries=`: see `Backoff`. Raises ValueError for what cannot be."""
    kinds = errors if isinstance(errors, tuple) else (errors,)
    if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
        raise ValueError(f"backoff: attempts={attempts!r} is a whole number from 1 on")
    for name, value, least in (("initial", initial, 0.0), ("factor", factor, 1.0), ("most", most, 0.0)):
        if not (isinstance(value, (int, float)) and least <= value < math.inf):
            raise ValueError(f"backoff: {name}={value!r} is a number from {least:g} on")
    if not (isinstance(jitter, (int, float)) and 0 <= jitter <= 1):
        raise ValueError(f"backoff: jitter={jitter!r} is a share from 0 to 1")
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds) or not kinds:
        raise ValueError(f"backoff: errors={errors!r} is a class of exceptions, or a tuple of them")
    return Backoff(attempts, float(initial), float(factor), float(most), float(jitter), kinds)
