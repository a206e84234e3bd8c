"""Have an older eSault write what a killed run of it leaves, for `test_older_versions.py`.

    python tests/acceptance/written_by/write.py COMMIT [--without windows] [--with slow] [--with splits]

Checks COMMIT out beside this working copy, runs `program.py` with it until it has two checkpoints, with `slow` one that is unaligned,
kills it, and keeps its folder as DAY-COMMIT.tar.gz here. A package that only the older one needs has to be installed in this Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
#: lines of each file of `texts`
LINES = 400


def texts(folder: Path) -> None:
    """Files for the source of splits."""
    (folder / "texts").mkdir()
    for name in "abc":
        (folder / "texts" / f"{name}.txt").write_text("".join(f"{name} {i}\n" for i in range(LINES)))


def written(checkout: Path, folder: Path, flags: dict[str, bool]) -> None:
    """What a killed run leaves in `folder`."""
    shutil.copy(HERE / "program.py", folder / "program.py")
    texts(folder)
    sets = [word for name, on in flags.items() for word in ("--set", f"{name}={'true' if on else 'false'}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "esault", "run", "program.py", "--checkpoint", "0.4", "--plain", "--policy", "none", *sets],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(checkout)}, start_new_session=True,
    )  # fmt: skip
    until, state = time.monotonic() + 60, folder / ".esault" / "kept"
    try:
        while True:
            newest = max(state.glob("checkpoint-*.json"), default=None)
            second = newest is not None and newest.stem[-8:] >= "00000002"
            if second and (not flags["slow"] or '"in_flight"' in newest.read_text()):
                break
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"the checkpoint was not written: {newest}")
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    time.sleep(3.0)  # its other processes go


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--with", dest="on", action="append", default=[], choices=["slow", "splits"])
    parser.add_argument("--without", dest="off", action="append", default=[], choices=["windows"])
    given = parser.parse_args()
    flags = {"windows": "windows" not in given.off, **{name: name in given.on for name in ("slow", "splits")}}

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()

    commit, day = git("log", "-1", "--format=%h %cs", given.commit).split()
    with tempfile.TemporaryDirectory(prefix="esault-older-") as scratch:
        checkout, folder = Path(scratch, "checkout"), Path(scratch, "run")
        folder.mkdir()
        git("worktree", "add", "--detach", str(checkout), commit)
        try:
            written(checkout, folder, flags)
        finally:
            git("worktree", "remove", "--force", str(checkout))
        (folder / "flags.json").write_text(json.dumps(flags) + "\n")
        (folder / "program.py").unlink()
        shutil.rmtree(folder / "texts")
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        target = HERE / f"{day}-{commit}.tar.gz"
        with tarfile.open(target, "w:gz") as kept:
            for path in sorted(folder.iterdir()):
                kept.add(path, path.name)
    print(target)


if __name__ == "__main__":
    main()
