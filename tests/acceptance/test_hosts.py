"""The same topology on several hosts: nodes on loopback, each with processes, an actor system and a lodge of its own."""

from __future__ import annotations

import contextlib
import json
import pickle
import random
import re
import signal
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flows
import psutil
import pytest
from nodes import NodeProcess
from test_checkpointed_runs import check, wanted, write_text
from test_door import esault
from waiting import until

from esault.cluster import versions
from esault.cluster.connection import Lost, call
from esault.cluster.key import ClusterKey, make_key
from esault.cluster.messages import Attach
from esault.cluster.tls import Refused
from esault.errors import UsageError
from esault.runtime.net.links import HEADER, PREFACE
from esault.runtime.session.resolve_hosts import reach

pytestmark = pytest.mark.slow


def hosts_of(report, unit):
    return set(report["units"][unit]["hosts"].values())


def test_a_unit_grows_over_two_hosts_while_tuples_flow_and_every_word_counts_once(command, nodes, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 2400)
    more = {"path": "in.txt", "out": "out.jsonl", "gate": tmp_path / "gate", "rate": 1200.0, "p": 2}
    command.start("gated", *nodes.options, "--policy", "none", "--report", "r.json", **more)
    command.running()
    with pytest.raises(UsageError, match="no host has a free slot"):  # a run takes all that are free
        reach(flows.counted("x", "in.txt", "out.jsonl").plan(), tmp_path / "hosts.toml", nodes.key, None, None)
    command.scale("count", 4)
    (tmp_path / "gate").touch()
    code, _, err = command.wait()
    assert code == 0, err
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = json.loads((tmp_path / "r.json").read_text())
    assert hosts_of(report, "count") == hosts_of(report, "split") == {"a", "b"}
    assert [(c["unit"], c["from"], c["to"]) for c in report["changes"]] == [("count", 2, 4)]
    assert report["roots"]["replayed"] == 0
    until(lambda: all("has left node" in nodes[name].said() for name in "ab"))
    assert [len(nodes[name].tree()) for name in "ab"] == [1, 1]


@pytest.mark.parametrize("how", [(), ("--now",)], ids=["in order", "at once"])
def test_a_stop_while_hosts_are_being_reached_ends_the_run_as_soon_as_it_has_begun(command, nodes, tmp_path, how):
    nodes.start("a", "b")
    write_text(tmp_path, 50)
    more = {
        "path": "in.txt",
        "out": "out.jsonl",
        "gate": tmp_path / "gate",
        "rate": 600.0,
        "p": 2,
    }  # it never ends by itself
    command.start("gated", *nodes.options, "--policy", "none", **more)
    until(lambda: esault("stop", *how, command.name)[0] == 0)
    code, _, err = command.wait()  # it has no end of its own
    assert code in (0, 130), err
    until(lambda: [len(nodes[name].tree()) for name in "ab"] == [1, 1])


def test_a_run_begins_without_a_host_that_does_not_answer_to_the_end(command, nodes, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 50)
    (tmp_path / "gate").touch()
    nodes["b"].kill(signal.SIGSTOP)  # its port still takes connections
    try:
        command.start("gated", *nodes.options, path="in.txt", out="out.jsonl", gate=tmp_path / "gate", rate=600.0)
        code, _, err = command.wait()
    finally:
        nodes["b"].kill(signal.SIGCONT)
    assert code == 0, err
    assert "The run begins without it" in err
    check(tmp_path / "out.jsonl", wanted(tmp_path))


def listening(node):
    """TCP ports of all processes of a host, with the address that each listens on."""
    found = []
    for process in node.tree():
        try:
            found += [each.laddr for each in process.net_connections("tcp") if each.status == "LISTEN"]
        except psutil.Error:
            continue
    return found


class Evil:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_strangers_achieve_nothing_and_are_told_of(command, nodes, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 2400)
    more = {"path": "in.txt", "out": "out.jsonl", "gate": tmp_path / "gate", "rate": 600.0, "p": 2}
    command.start("gated", *nodes.options, "--policy", "none", "--report", "r.json", **more)
    command.running()
    places = {place for name in "ab" for place in listening(nodes[name])}
    # a node, an actor system, and two sockets for each sub-unit of each host
    assert len(places) >= 2 + 2 * 5
    assert {place.ip for place in places} == {"127.0.0.1"}
    trap = tmp_path / "executed"
    evil = pickle.dumps(Evil(trap))
    junk = [
        b"",
        b"\xff" * 100,
        evil,
        b"%d>" % len(evil) + evil,
        random.Random(1).randbytes(5000),
        b"GET / HTTP/1.0\r\n\r\n",
    ]
    junk += [
        PREFACE + HEADER.pack(len(evil)) + evil,
        HEADER.pack(len(evil)) + evil,
        b"\x16\x03\x01\x02\x00\x01" + bytes(600),
    ]
    for place in places:
        for said in junk:
            with socket.create_connection(place, 5) as stranger:
                stranger.sendall(said)
    # somebody with a key of another cluster, and somebody with none
    other = ClusterKey(make_key(tmp_path / "other"))
    with pytest.raises((Lost, Refused), match="another key"):
        call("127.0.0.1", int(nodes["a"].address.rpartition(":")[2]), other.client, 5)
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname, bare.verify_mode = False, ssl.CERT_NONE

    def without_a_key(place):
        with socket.create_connection(place, 5) as stranger, contextlib.suppress(OSError):
            stranger.settimeout(0.3)
            with bare.wrap_socket(stranger) as wrapped:
                wrapped.sendall(evil)
                wrapped.recv(1)

    with ThreadPoolExecutor(len(places)) as pool:  # some of them say nothing for as long as it takes
        list(pool.map(without_a_key, places))
    # one who has the key, and is not this run's driver: the lodge has one already
    key = ClusterKey(nodes.key)
    node = call("127.0.0.1", int(nodes["a"].address.rpartition(":")[2]), key.client, 5)
    with pytest.raises(Lost):
        node.ask(Attach("x"), 5)
    node.close()
    (tmp_path / "gate").touch()
    code, out, err = command.wait()
    assert code == 0, err
    assert not trap.exists()
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0)
    said = until(lambda: nodes["a"].said() if "it began with Attach, not with Hello" in nodes["a"].said() else "")
    assert "node a refused" in said
    assert "another key, so it belongs to another cluster" in said
    assert "it does not speak TLS" in said
    assert re.search(r"/\d+\.(data|express) refused", err + out), "sub-units tell of strangers"
    assert nodes["a"].process.poll() is None


def test_without_a_key_only_this_machine_is_let_in(tmp_path, monkeypatch, command):

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    code, _, err = esault("node", "--listen", "192.0.2.1:7420")
    assert code == 2
    assert "without a key a node listens on this machine alone" in err
    node = NodeProcess(tmp_path, "a", "--slots", "5")
    try:
        node.ready()
        (tmp_path / "hosts.toml").write_text(f'hosts = ["{node.address}"]\n')
        write_text(tmp_path, 100)
        code, _, err = command.run("counted", "--hosts", "hosts.toml", path="in.txt", out="out.jsonl", p=2)
        assert code == 0, err
        check(tmp_path / "out.jsonl", wanted(tmp_path))
    finally:
        node.end()


def test_what_is_wrong_is_said_before_anything_starts(nodes, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes.start("a", slots=2)
    write_text(tmp_path, 100)
    plan = flows.counted("x", "in.txt", "out.jsonl").plan()

    def told(key, text=None, plan=plan, slots=None):
        if text is not None:
            (tmp_path / "hosts.toml").write_text(text)
        with pytest.raises(UsageError) as caught:
            reach(plan, "hosts.toml", key, slots, None)
        return str(caught.value)

    code, _, err = command.run("counted", *nodes.options, path="in.txt", out="out.jsonl", p=2)
    assert (code, "needs 5 slots to start and there are 2; start more nodes" in err) == (2, True), err
    assert not (tmp_path / "out.jsonl").exists()
    here = f'hosts = ["{nodes["a"].address}"]\n'
    other = str(make_key(tmp_path / "other"))
    said = []
    (tmp_path / "hosts.toml").write_text(here.replace("]", ', "127.0.0.1:1", "no.such.host.invalid"]'))
    spec = reach(plan, "hosts.toml", nodes.key, None, None, said.append)
    assert (spec.nodes, spec.absent) == (((nodes["a"].address, 2),), ("127.0.0.1:1", "no.such.host.invalid"))
    assert ["127.0.0.1:1 cannot be reached" in said[0], "no.such.host.invalid cannot be" in said[1]] == [True, True]
    assert "another key, so it belongs to another cluster" in told(other, here)
    assert "--slots 3: the hosts have 2 free slots" in told(nodes.key, slots=3)
    assert "unit 'count' needs 'gpu', which no host offers" in told(nodes.key, here + '[needs]\ncount = ["gpu"]\n')
    assert "names 'sum', which is no unit; there are: count, lines, split" in told(
        nodes.key, here + "[needs]\nsum = []\n"
    )
    assert "other hosts do not have" in told(nodes.key, here, flows.stdin("x", "out.jsonl").plan())
    assert "collects rows in the memory of this command" in told(nodes.key, here, flows.of_bolt("x", "Boom").plan())
    assert "host 127.0.0.1:1 cannot be reached" in told(nodes.key, 'hosts = ["127.0.0.1:1"]\n')
    assert "192.0.2.1:1 is another machine, and there is no key" in told(None, 'hosts = ["192.0.2.1:1"]\n')
    join = ("node", "--listen", "127.0.0.1:0", "--key", nodes.key, "--join", nodes["a"].address)
    code, _, err = esault(*join, "--name", "a")
    assert (code, "there is a node named 'a' already" in err) == (2, True), err
    code, _, err = esault(*join, "--name", "no blanks")
    assert (code, "letters, digits" in err) == (2, True), err
    there = versions.installed()
    monkeypatch.setattr(versions, "installed", lambda: "0.0.1")
    said = told(nodes.key, here)
    assert f"host a has eSault {there} and Python {versions.PYTHON}, and you have eSault 0.0.1" in said
    until(lambda: "it has eSault 0.0.1" in nodes["a"].said())


def test_user_code_that_fails_or_prints_on_another_host_is_heard(command, nodes, tmp_path):
    nodes.start("a")
    (tmp_path / "flow.py").write_text(
        "import sibling\n"
        "from esault import Bolt, Topology, by_key\nfrom esault.sinks import JsonLines\nfrom esault.sources import Items\n"
        "class Boom(Bolt):\n"
        "    def process(self, key, value):\n"
        "        print(sibling.WORD, key)\n"
        "        if value == 7:\n            raise ValueError('seven is too much')\n"
        "        self.emit(key, value)\n"
        "def topology() -> Topology:\n"
        "    t = Topology('boom')\n"
        "    t.spout('numbers', Items([(i, i) for i in range(10)])).bolt('worker', Boom, grouping=by_key()).sink('o', JsonLines('o'))\n"
        "    return t\n"
    )
    (tmp_path / "sibling.py").write_text("WORD = 'printed'\n")
    code, out, err = esault("run", str(tmp_path / "flow.py"), "--plain", *nodes.options, cwd=tmp_path)
    assert code == 1
    assert "ValueError: seven is too much" in err
    assert "printed 7" in out
    until(lambda: "has left node a" in nodes["a"].said())


def test_the_first_section_of_the_how_to_runs(tmp_path):
    """As it stands, but for the ports."""
    text = (Path(__file__).parents[2] / "docs/how-to/deploy.md").read_text().partition("## Three hosts")[0]
    for port in ("7421", "7422"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            text = text.replace(port, str(free.getsockname()[1]))
    blocks = re.findall(r"^```\n(.*?)^```$", text, re.M | re.S)
    nodes = []
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the cat sat on the mat\n" * 50)
    try:
        for block in blocks:
            if not block.startswith("$ "):
                (tmp_path / "hosts.toml").write_text(block)
                continue
            for line in block.splitlines():
                words = line.removeprefix("$ esault ").split()
                if words[-1] != "&":
                    code, _, err = esault(*words, cwd=tmp_path)
                    assert code == 0, err
                    continue
                options = dict(zip(words[1:-1:2], words[2:-1:2]))
                rest = ("--key", options["--key"], "--slots", options["--slots"])
                nodes.append(NodeProcess(tmp_path, options["--name"], *rest, listen=options["--listen"]).ready())
        report = json.loads((tmp_path / "report.json").read_text())
        assert hosts_of(report, "count") == {"a", "b"}
    finally:
        for node in nodes:
            node.end()


LATE = "import time; real = time.time; time.time = lambda: real() + 3600; from esault.cli.main import main; main()"


def test_a_clock_that_is_an_hour_off_is_told_of_on_both_sides_and_changes_nothing(command, nodes, tmp_path):
    late = NodeProcess(tmp_path, "late", "--key", nodes.key, "--slots", "5", program=("-c", LATE))
    nodes.nodes["late"] = late.ready()
    nodes.name_all()
    write_text(tmp_path, 100)
    code, _, err = command.run("counted", *nodes.options, "--report", "r.json", path="in.txt", out="out.jsonl", p=2)
    assert code == 0, err
    assert "the clock of host late is +3600 s off" in err
    assert "the clock here is +3600 s off" in late.said()
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert json.loads((tmp_path / "r.json").read_text())["end_to_end_ms"]["max"] < 60_000
