"""Jars of a project for tests, by Maven."""

from __future__ import annotations

import subprocess
from pathlib import Path


def copy_jars(pom: str, artifacts: str, folder: Path, scratch: Path) -> None:
    """Copy jars of what a project depends on into a folder. `artifacts`: their names, with commas between; `scratch` is for the project."""
    file = scratch / "pom.xml"
    file.write_text(pom)
    command = ["mvn", "-q", "-B", "-f", str(file), "dependency:copy-dependencies", f"-DincludeArtifactIds={artifacts}"]
    subprocess.run([*command, f"-DoutputDirectory={folder}"], check=True)
