"""Three hosts and a driver with network stacks of their own: splits across hosts, cuts, loss, join and drain, each run counted exactly."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import depth
import pytest
from namespaces import Network, why_not
from nodes import Nodes
from test_checkpointed_runs import check, wanted, write_text
from test_hosts import hosts_of
from test_hosts_come_and_go import checkpoint_of, end, hosts, report_of, start
from waiting import PATIENCE, until

from esault.runtime.remote.host_connection import SILENCE

pytestmark = pytest.mark.slow
REASON = why_not()
if REASON is not None:
    pytest.skip(REASON, allow_module_level=True)


@pytest.fixture(scope="module")
def network():
    made = Network("driver", "a", "b", "c", "d")
    yield made
    made.remove()


@pytest.fixture
def nodes(tmp_path, network):
    made = Nodes(tmp_path, network)
    yield made
    made.end()
    for name in "abcd":
        network.cut(name, False)


@pytest.fixture
def command(command, network):
    command.prefix = network.on("driver")
    return command


@pytest.fixture
def other_command(other_command, network):
    other_command.prefix = network.on("driver")
    return other_command


@depth.deep("on loopback by test_hosts_come_and_go.py")
def test_a_unit_grows_over_hosts_one_joins_and_one_drains_and_every_word_counts_once(command, nodes, network, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 3000)
    start(command, nodes, p=2)
    nodes.start("c", more=("--join", nodes["a"].address))
    until(lambda: "c" in hosts(command))
    command.scale("count", 5)
    until(lambda: any(n.startswith("count") for n in hosts(command)["c"]["sub_units"]))
    until(lambda: sum(sum(host["sent"].values()) for host in hosts(command).values()) > 10_000)
    nodes["b"].kill(signal.SIGTERM)
    assert nodes["b"].process.wait(PATIENCE) == 0
    assert command.status()["phase"] == "running"
    end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = report_of(tmp_path)
    assert hosts_of(report, "count") == {"a", "b", "c"}
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0)
    said = nodes["a"].said()
    assert "node c (10.77.0.4:7420) has joined" in said
    assert "refused" not in said


@depth.deep("killed in test_hosts_come_and_go.py, and cut off by test_bad_links.py")
@pytest.mark.parametrize("how", ["killed", "cut off"])
def test_a_host_that_is_lost_is_given_up_within_three_seconds_and_each_count_lands_once(
    command, nodes, network, tmp_path, how
):
    nodes.start("a", "b", "c")
    write_text(tmp_path, 1200)
    start(command, nodes, "--checkpoint", "0.3", p=3)
    until(lambda: checkpoint_of(command) >= 1)
    # cut for a second, which the network makes up for by itself
    network.cut("b")
    time.sleep(1.0)
    network.cut("b", False)
    if how == "killed":
        nodes["b"].kill()
    else:
        network.cut("b")
    until(lambda: "b" not in hosts(command))
    until(lambda: command.status().get("phase") == "running")
    if how == "cut off":
        # its own processes end although nobody can tell them to, and the node is back when the link is
        until(lambda: "the driver is gone" in nodes["b"].said())
        until(lambda: len(nodes["b"].tree()) == 1)
        network.cut("b", False)
        until(lambda: "b" in hosts(command))
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert len(report_of(tmp_path)["restores"]) == 1
    # By the driver's clock: that of a test counts what else the machine does. On a busy machine the host may be the first to
    # give up, by its own shorter limit, and the driver then hears that its connection is closed.
    assert "host b is lost: " in err, err
    assert "host b is lost" in err
    assert SILENCE < 3.0


def seeing_another(folder):
    """What a command begins with to see an empty folder there."""
    return ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder))


def test_a_host_that_does_not_see_a_shared_folder_is_refused_and_may_not_join(command, nodes, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    out = "elsewhere/out.jsonl"
    nodes.start("a", slots=5)
    nodes.start("b", prefix=seeing_another(tmp_path / "elsewhere"))
    write_text(tmp_path, 1200)
    code, _, err = command.run("counted", *nodes.options, path="in.txt", out=out)
    assert code == 2
    assert "host b does not see in" in err
    assert "what this machine has just written there" in err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert all(node.process.poll() is None for node in nodes.nodes.values())
    nodes.name_all("a")
    start(command, nodes, out=out)
    nodes.start("c", more=("--join", nodes["a"].address), prefix=seeing_another(tmp_path / "elsewhere"))
    until(lambda: "node c" in nodes["a"].said())
    nodes.start("d", more=("--join", nodes["a"].address))
    until(lambda: "d" in hosts(command))
    command.scale("count", 4)
    assert set(hosts(command)) == {"a", "d"}
    err = end(command)
    check(tmp_path / out, wanted(tmp_path))
    assert "host c does not see in" in err
    assert [p.name for p in (tmp_path / "elsewhere").iterdir() if p.name.startswith(".esault-mark")] == []


def test_a_sink_on_a_path_that_is_not_shared_stays_on_the_host_that_sees_it(command, other_command, nodes, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    out = "elsewhere/out.jsonl"
    nodes.start("b", "c", prefix=seeing_another(tmp_path / "elsewhere"))
    write_text(tmp_path, 1200)

    def undeclared(*names):
        nodes.name_all(*names)
        text = (tmp_path / "hosts.toml").read_text()
        (tmp_path / "hosts.toml").write_text(text.replace(f'"{tmp_path}"', f'"{tmp_path}/state"'))

    undeclared("b", "c")
    code, _, err = command.run("counted", *nodes.options, path="in.txt", out=out)
    assert code == 2
    assert "sink 'out' lies at elsewhere/out.jsonl, which hosts.toml does not say is the same on all hosts" in err
    assert "or start a node on this machine, for no host sees the same there" in err
    nodes.start("a")
    undeclared()
    code, _, err = command.run("counted", *nodes.options, "--checkpoint", "1", "--state", "s", path="in.txt", out=out)
    assert (code, "the state of the run lies at" in err) == (2, True), err
    start(command, nodes, "--checkpoint", "0.5", "--state", "state/s", out=out, p=2)
    command.scale("count", 4)
    until(lambda: checkpoint_of(command) >= 1)
    err = end(command)
    check(tmp_path / out, wanted(tmp_path))
    report = report_of(tmp_path)
    assert hosts_of(report, "count") == {"a"}
    assert {"b", "c"} <= hosts_of(report, "split") | hosts_of(report, "lines")
    assert "unit 'count' stays on host a, which sees it" in err
    # and that host is lost
    (tmp_path / "gate").unlink()
    start(other_command, nodes, out="elsewhere/other.jsonl")
    nodes["a"].kill()
    code, _, err = other_command.wait()
    assert code == 1
    assert "unit 'count' needs " in err
    assert "elsewhere, which no host offers" in err


def test_without_a_key_a_node_listens_on_no_other_address(network):
    done = subprocess.run(
        [*network.on("a"), sys.executable, "-m", "esault", "node", "--listen", network.addresses["a"]],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "without a key a node listens on this machine alone" in done.stderr
