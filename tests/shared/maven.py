"""Jars of a project for tests, by Maven, and folders of what is fetched once for a machine."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def fetched_once(cache: Path) -> Iterator[Path]:
    """Give a place for a folder to be made, which becomes `cache` behind the block; what lies beside it goes."""
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
        made = Path(scratch, "made")
        yield made
        with contextlib.suppress(OSError):  # another process was first
            made.rename(cache)


def copy_jars(pom: str, folder: Path, artifacts: str = "") -> None:
    """Copy jars of what a project depends on into a folder: those of these names, with commas between, or all. Raises CalledProcessError."""
    file = folder.parent / "pom.xml"
    file.write_text(pom)
    command = ["mvn", "-q", "-B", "-f", str(file), "dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    only = [f"-DincludeArtifactIds={artifacts}"] if artifacts else []
    subprocess.run([*command, *only], check=True, capture_output=True, text=True, timeout=1200)
