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


def repeat_runs(
    runs: Runs,
    schedule: Schedule,
    run: Callable[[], None],
    code: Mapping[str, str],
    now: Callable[[], float],
    wait: Callable[[float], object],
) -> None:
    """Run when it is due, until Ctrl-C or SIGTERM. What fails is said, and tried again when the next run is due.

    `code`: hashes of the files with the code that runs; where one is another by now, the next run says so.
    What must wait for another analysis is tried again until that is over. Of several runs that wait for the same the first says so.
    """
    from esault.sinks.landing.lock import HeldError
    from esault.spark.pipeline import NotLanded
    from esault.spark.tables.schedule import repeat

    said: dict[str, str] = {}

    def say_once(about: str, text: str) -> None:
        if text and said.get(about) != text:
            say(text)
        said[about] = text

    def once() -> bool:
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
            return False
        except NotLanded as error:
            waits = f"waiting for rows: {error}"
        except EsaultError as error:
            say(f"this run failed: {error}")
        except Exception as error:  # of a function of the file
            traceback.print_exception(error)
            say(f"this run failed: {type(error).__name__}: {error}")
        finally:
            say_once("run", waits)
        return True

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
