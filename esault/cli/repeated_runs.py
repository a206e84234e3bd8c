"""Runs of `esault analyze --follow`, `--every` and `--cron`: one after another, and what is said of them."""

from __future__ import annotations

import hashlib
import os
import signal
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from esault.cli.spark_session import say
from esault.errors import EsaultError, UsageError

if TYPE_CHECKING:
    from esault.spark.tables.runs import Runs
    from esault.spark.tables.schedule import Schedule

__all__ = ["hash_of", "repeat_runs"]

#: seconds until a run that fails again and again is tried once more, at most
MOST_WAIT = 300.0


def repeat_runs(
    runs: Runs,
    schedule: Schedule,
    run: Callable[[], None],
    code: Mapping[str, str],
    now: Callable[[], float],
    wait: Callable[[float], object],
) -> None:
    """Run when it is due, until Ctrl-C or SIGTERM. What fails is said, and tried again: after a second, two, four, up to five minutes.
    Rows that must not come are waited out: the next run that is due tries again.

    `code`: hashes of the files with the code that runs; where one is another by now, the next run says so.
    What must wait for another analysis is tried again until that is over. Of several runs that wait for the same the first says so.
    """
    from esault.sinks.landing.lock import HeldError
    from esault.spark.jobs import NotLanded
    from esault.spark.tables.expectations import ExpectationFailed
    from esault.spark.tables.schedule import repeat

    said: dict[str, str] = {}
    failed = 0

    def say_once(about: str, text: str) -> None:
        if text and said.get(about) != text:
            say(text)
        said[about] = text

    def failure(text: str) -> float:
        """Say why a run failed; the seconds until it is tried again."""
        nonlocal failed
        seconds = min(MOST_WAIT, 2.0**failed)
        failed = min(failed + 1, 30)
        say(f"this run failed: {text}\ntried again in {seconds:.0f} s")
        return seconds

    def once() -> float | None:
        nonlocal failed
        changed = ", ".join(os.path.relpath(file) for file, hashed in code.items() if hash_of(file) != hashed)
        say_once(
            "code",
            f"{changed} changed since this command read it: start it again to run the new code" if changed else "",
        )
        waits = ""
        try:
            run()
        except UsageError:
            raise
        except HeldError as error:
            waits = f"this run waits: {error}"
            return 0.0
        except NotLanded as error:
            waits = f"waiting for rows: {error}"
        except ExpectationFailed as error:
            say(f"this run failed: {error}")
        except EsaultError as error:
            return failure(str(error))
        except Exception as error:  # of a function of the file
            if said.get("traceback") != str(error):
                traceback.print_exception(error)
            said["traceback"] = str(error)
            return failure(f"{type(error).__name__}: {error}")
        finally:
            say_once("run", waits)
        failed = 0
        return None

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with runs.pipeline.kept_session():
            repeat(once, schedule, now, wait)
    except KeyboardInterrupt:
        say("stopped")
    finally:
        signal.signal(signal.SIGTERM, before)


def hash_of(file: str) -> str:
    """Return the hash of a file; of one that cannot be read it is empty."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:16]
    except OSError:
        return ""
