"""Thespian calls an actor's handler by the name of the message's class: a handler under another name is never called."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[3] / "esault" / "runtime"
PREFIX = "receiveMsg_"


def handlers():
    for path in sorted(RUNTIME.rglob("*.py")):
        text = path.read_text()
        if PREFIX not in text:  # each worker collects this
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith(PREFIX):
                yield pytest.param(node, id=f"{path.stem}.{node.name}")


@pytest.mark.parametrize("handler", list(handlers()))
def test_a_handler_has_the_name_of_its_message(handler):
    annotation = handler.args.args[1].annotation
    assert handler.name == PREFIX + ast.unparse(annotation).rpartition(".")[2]
