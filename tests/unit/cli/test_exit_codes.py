"""The exit code of an error: 2 where nothing was started, 1 where what was asked for had begun."""

from __future__ import annotations

import click
import pytest

from esault.cli import main as cli
from esault.errors import EsaultError, TopologyFailed, UsageError
from esault.report import Checkpoints
from esault.spark.failure import JavaDied


class Report:
    checkpoints = Checkpoints(newest=7, directory="state")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no"), 2, "error: no\n"),
        (EsaultError("no"), 2, "error: no\n"),
        (JavaDied("Java ended"), 1, "error: Java ended\n"),
        (TopologyFailed("boom"), 1, "failed: boom\n"),
        (
            TopologyFailed("boom", Report()),
            1,
            "failed: boom\ncheckpoint 7 is kept in state: --resume goes on from there\n",
        ),
        (
            TopologyFailed("gone: go on with --resume", Report()),
            1,
            "failed: gone: go on with --resume\ncheckpoint 7 is kept in state\n",
        ),
    ],
)
def test_what_an_error_ends_with(error, code, said, monkeypatch, capsys):
    @click.command()
    def fails():
        raise error

    monkeypatch.setattr(cli, "cli", fails)
    assert cli._code_of([]) == code
    assert capsys.readouterr().err == said
