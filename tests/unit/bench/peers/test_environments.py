from __future__ import annotations

import json
import subprocess
import sys
import venv

import pytest


def _environment(folder, name, **versions):
    """As `install` leaves it, with this Python in it."""
    environment = folder / name
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / "peer.json").write_text(json.dumps(versions))
    return str(environment / "bin" / "python")


@pytest.fixture
def _nothing_installed(monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_a_peer_is_found_in_its_own_environment_first(tmp_path):
    from bench.peers.environments import Found, find

    python = _environment(tmp_path, "pathway", pathway="0.33.0")
    assert find("pathway", tmp_path) == Found(python, {"pathway": "0.33.0"})


def test_a_peer_that_is_nowhere_is_skipped_with_the_remedy(tmp_path, _nothing_installed):
    from bench.peers.environments import find

    assert find("flink", tmp_path) == "skipped: flink is not installed (python -m bench.peers install flink)"


def test_an_environment_without_its_stamp_was_not_finished_and_is_not_used(tmp_path, _nothing_installed):
    from bench.peers.environments import find

    _environment(tmp_path, "pathway", pathway="0.33.0")
    (tmp_path / "pathway" / "peer.json").unlink()
    assert "not installed" in find("pathway", tmp_path)


@pytest.mark.parametrize("name", ["flink", "spark"])
def test_without_a_java_what_needs_one_is_skipped_and_says_why(name, tmp_path, monkeypatch):
    from bench.peers import environments as peers

    _environment(tmp_path, name, version="1")
    why = "Spark needs Java 17 or newer, and none was found (JAVA_HOME (/old) is Java 8). Set JAVA_HOME"
    monkeypatch.setattr(peers, "_ask", lambda python, code: f"{why}\n")
    assert peers.find(name, tmp_path) == (
        f"skipped: {name} needs a Java: {why} (python -m bench.peers install {name} brings one, too)"
    )


def test_the_look_for_a_java_is_taken_with_the_peers_python(tmp_path, monkeypatch):
    from bench.peers.environments import find

    _environment(tmp_path, "spark", pyspark="4.3.0")
    (tmp_path / "java" / "bin").mkdir(parents=True)
    java = tmp_path / "java" / "bin" / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.1"\nMODULES="java.base jdk.incubator.vector"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    assert find("spark", tmp_path).versions == {"pyspark": "4.3.0"}


def _pip(monkeypatch, code):
    commands = []

    def made(environment, **options):
        (environment / "bin").mkdir(parents=True)
        (environment / "bin" / "python").symlink_to(sys.executable)

    def ran(command, **options):
        commands.append([str(word) for word in command])
        return subprocess.CompletedProcess(command, code)

    monkeypatch.setattr(venv, "create", made)
    monkeypatch.setattr(subprocess, "run", ran)
    return commands


def test_what_pip_cannot_install_is_an_error_that_says_what_helps(tmp_path, monkeypatch, capsys):
    from bench.peers import environments as peers

    commands = _pip(monkeypatch, 1)
    assert peers.run(["install", "flink", "--into", str(tmp_path)]) == 1
    assert commands[0][1:5] == ["-m", "pip", "install", "--upgrade"]
    assert "apache-flink>=2.3,<3" in commands[0]
    error = capsys.readouterr().err
    assert "flink: pip could not install apache-flink>=2.3,<3" in error
    assert "wheels for CPython 3.9 to 3.12" in error
    assert not (tmp_path / "flink" / "peer.json").exists()


def test_an_environment_is_stamped_once_all_in_it_loads(tmp_path, monkeypatch, capsys):
    from bench.peers import environments as peers

    _pip(monkeypatch, 0)
    asked = []

    def ask(python, code):
        asked.append(code)
        return '{"pathway": "0.33.0"}\n'

    monkeypatch.setattr(peers, "_ask", ask)
    assert peers.run(["install", "pathway", "--into", str(tmp_path)]) == 0
    assert "('pathway',)" in asked[0]
    assert "pathway: pathway 0.33.0" in capsys.readouterr().out
    assert peers.find("pathway", tmp_path).versions == {"pathway": "0.33.0"}


def test_what_is_installed_and_does_not_load_is_an_error(tmp_path, monkeypatch):
    from bench.peers import environments as peers

    def ask(python, code):
        raise peers.PeerError("python: ImportError: no libstdc++")

    _pip(monkeypatch, 0)
    monkeypatch.setattr(peers, "_ask", ask)
    with pytest.raises(peers.PeerError, match=r"pathway is installed, and does not load: .*no libstdc\+\+"):
        peers.install("pathway", tmp_path)
    assert not (tmp_path / "pathway" / "peer.json").exists()


def test_an_unknown_peer_is_refused_with_those_there_are(capsys):
    from bench.peers.environments import run

    with pytest.raises(SystemExit) as caught:
        run(["install", "storm"])
    assert caught.value.code == 2
    assert "there is no peer 'storm'; there are: pathway, flink, spark" in capsys.readouterr().err


def test_the_list_says_which_there_are_and_how_to_get_the_others(tmp_path, capsys, _nothing_installed):
    from bench.peers.environments import run

    python = _environment(tmp_path, "pathway", pathway="0.33.0")
    assert run(["list", "--into", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "pathway 0.33.0" in out
    assert python in out
    assert "spark is not installed (python -m bench.peers install spark)" in out
