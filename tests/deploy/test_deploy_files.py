"""Containers, manifests and units in deploy/: valid where a checker is at hand, and with options that commands have."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def read_all(path):
    yaml = pytest.importorskip("yaml")
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def containers():
    """(where, pod, container) of all manifests."""
    for path in MANIFESTS:
        for each in read_all(path):
            if each["kind"] == "StatefulSet":
                pod = each["spec"]["template"]["spec"]
                for container in pod["containers"]:
                    yield f"{path.name} {each['metadata']['name']}", pod, container


def parsed(arguments):
    """Read a command line as esault does; nothing is run. The values of its options."""
    command: click.Command = importlib.import_module(f"esault.cli.{arguments[0]}").command
    return command.make_context(arguments[0], list(arguments[1:])).params


class TestKubernetes:
    @pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
    def test_each_resource_is_as_the_schema_wants_it(self, path):
        kubernetes_validate = pytest.importorskip("kubernetes_validate")
        found = read_all(path)
        assert found
        for each in found:
            kubernetes_validate.validate(each, "1.33", strict=True)

    def test_their_command_lines_have_options_that_there_are(self):
        for where, _, container in containers():
            params = parsed([re.sub(r"\$\(POD_IP\)", "10.0.0.1", each) for each in container["args"]])
            assert params["log_format"] == "json", where
            assert params["resume"] if container["args"][0] == "run" else params["key"], where

    def test_each_has_probes_state_and_time_to_drain(self):
        for where, pod, container in containers():
            assert pod["terminationGracePeriodSeconds"] >= 120, where
            assert {"readinessProbe", "livenessProbe"} <= container.keys(), where
            ports = {each["name"] for each in container["ports"]}
            for probe in ("readinessProbe", "livenessProbe"):
                ((kind, asked),) = ((k, v) for k, v in container[probe].items() if k in ("httpGet", "tcpSocket"))
                assert asked["port"] in ports, where
                assert kind == "tcpSocket" or asked["path"] in ("/readyz", "/healthz"), where
            volumes = {each["name"] for each in pod["volumes"]} | {"state"}
            assert {each["name"] for each in container["volumeMounts"]} <= volumes, where
            assert container["securityContext"]["readOnlyRootFilesystem"], where

    def test_what_is_written_goes_to_a_volume(self):
        for where, _, container in containers():
            if container["args"][0] == "run":
                mounts = tuple(m["mountPath"] + "/" for m in container["volumeMounts"] if not m.get("readOnly"))
                params = parsed(container["args"])
                out = dict(each.split("=") for each in params["settings"])["out"]
                assert params["state"].startswith(mounts) and out.startswith(mounts), where


class TestSystemd:
    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
    @pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
    def test_systemd_takes_them(self, path, tmp_path):
        program = tmp_path / "esault"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        copy = tmp_path / path.name.replace("@", "@words")
        text = path.read_text().replace("/opt/esault/bin/esault", str(program))
        copy.write_text(text)
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
        )
        said = [line for line in (done.stdout + done.stderr).splitlines() if path.stem.rstrip("@") in line]
        assert (done.returncode, said) == (0, []), done.stderr

    @pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
    def test_their_command_lines_have_options_that_there_are(self, path, monkeypatch):
        monkeypatch.setenv("ESAULT_NODE_ADDRESS", "10.0.0.2")
        (line,) = re.findall(r"^ExecStart=\S+/esault (.*)$", path.read_text(), re.M)
        assert parsed(shlex.split(line))["log_format"] == "json"


class TestContainers:
    def test_compose_runs_options_that_there_are(self):
        (compose,) = read_all(DEPLOY / "compose.yaml")
        params = parsed(compose["services"]["run"]["command"])
        assert (params["resume"], params["metrics"]) == (True, "0.0.0.0:9464")
        mounted = [each.split(":")[0] for service in compose["services"].values() for each in service["volumes"]]
        assert all((DEPLOY / each).exists() for each in mounted if each.startswith("./"))

    def test_docker_takes_it(self):
        if (
            shutil.which("docker") is None
            or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode
        ):
            pytest.skip("no docker compose")
        done = subprocess.run(
            ["docker", "compose", "-f", "deploy/compose.yaml", "config", "-q"], cwd=ROOT, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def test_the_extras_of_the_image_are_some_that_there_are(self):
        (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", (DEPLOY / "Containerfile").read_text(), re.M)
        known = re.findall(r"^([a-z-]+) =$", (ROOT / "setup.cfg").read_text(), re.M)
        assert set(extras.split(",")) <= set(known)


@pytest.mark.slow
def test_the_service_becomes_ready_pauses_on_sigterm_and_goes_on(tmp_path):
    """By the command line of the manifest, but for its paths and port."""
    pytest.importorskip("prometheus_client")
    args = next(c["args"] for where, _, c in containers() if where == "run.yaml words")
    moved = [each.replace("/job", str(DEPLOY / "job")).replace("/state", str(tmp_path)) for each in args]
    moved = ["127.0.0.1:0" if each == "0.0.0.0:9464" else each for each in moved]
    moved[moved.index("--checkpoint") + 1] = "0.5"
    moved += ["--set", "every=0.01"]
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "esault", *moved],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            url = ""
            while not url:
                said = json.loads(process.stderr.readline())["message"]
                url = said.removeprefix("metrics: ").removesuffix("/metrics") if said.startswith("metrics: ") else ""
            while not ready(url):
                time.sleep(0.05)
            while counted(url) < 30:
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=200)
            assert process.returncode == 0, err
            assert "paused at checkpoint" in out
        finally:
            process.kill()
            process.communicate()
    rows = [json.loads(line)["value"] for line in (tmp_path / "out" / "counts.jsonl").read_text().splitlines()]
    newest = Counter()
    for row in rows:
        newest[row["word"]] = max(newest[row["word"]], row["n"])
    assert sum(newest.values()) == len(rows) >= 60  # each word counted once, and no count anew


def ready(url):
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as answer:
            return answer.status == 200
    except urllib.error.HTTPError as error:
        assert error.code == 503
        return False


def counted(url):
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        return sum(float(n) for n in re.findall(r"^words_total\{.*\} (\S+)$", answer.read().decode(), re.M))
