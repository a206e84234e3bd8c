"""Spark's own file of settings: what a cluster's people say holds for eSault, too."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = ["settings_folder", "spark_defaults"]

_FILE = "spark-defaults.conf"
#: of Java's properties: a key, then =, : or a blank, then the value
_LINE = re.compile(r"\s*(spark\.[^\s=:]+)\s*[=:\s]\s*(.*?)\s*")


def spark_defaults(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in `$SPARK_CONF_DIR/spark-defaults.conf`, or in `$SPARK_HOME/conf`; none where there is no such file."""
    folder = settings_folder(environ)
    try:
        text = Path(folder, _FILE).read_text(encoding="utf-8", errors="replace") if folder else ""
    except OSError:
        return {}
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return {line[1]: line[2] for line in found if line and line[2]}


def settings_folder(environ: Mapping[str, str]) -> str | None:
    """Return the folder in which Spark looks for its settings, there or not; None where none is named."""
    home = environ.get("SPARK_HOME")
    return environ.get("SPARK_CONF_DIR") or (os.path.join(home, "conf") if home else None)
