"""Three hosts and a driver with network stacks of their own: splits across hosts, cuts, loss, join and drain, each run counted exactly."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from namespaces import Network, why_not
from nodes import Nodes, until
from test_checkpointed_runs import check, wanted, write_text
from test_hosts import hosts_of
from test_hosts_come_and_go import checkpoint_of, end, hosts, report_of, scale, start, status

pytestmark = pytest.mark.slow
REASON = why_not()
if REASON is not None:
    pytest.skip(REASON, allow_module_level=True)


@pytest.fixture(scope="module")
def network():
    made = Network("driver", "a", "b", "c")
    yield made
    made.remove()


@pytest.fixture
def nodes(tmp_path, network):
    made = Nodes(tmp_path, network)
    yield made
    made.end()
    for name in "abc":
        network.cut(name, False)


@pytest.fixture
def command(command, network):
    command.prefix = network.on("driver")
    return command


def test_a_unit_grows_over_hosts_one_joins_and_one_drains_and_every_word_counts_once(command, nodes, network, tmp_path):
    nodes.start("a", "b")
    write_text(tmp_path, 6000)
    start(command, nodes, p=2)
    nodes.start("c", more=("--join", nodes["a"].address))
    until(lambda: "c" in hosts(command))
    scale(command, "count", 5)
    until(lambda: any(n.startswith("count") for n in hosts(command)["c"]["sub_units"]))
    until(lambda: sum(sum(host["sent"].values()) for host in hosts(command).values()) > 10_000)
    nodes["b"].kill(signal.SIGTERM)
    assert nodes["b"].process.wait(15) == 0
    assert status(command)["phase"] == "running"
    end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = report_of(tmp_path)
    assert hosts_of(report, "count") == {"a", "b", "c"}
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0)
    said = nodes["a"].said()
    assert "node c (10.77.0.4:7420) has joined" in said
    assert "refused" not in said


@pytest.mark.parametrize("how", ["killed", "cut off"])
def test_a_host_that_is_lost_is_given_up_within_three_seconds_and_each_count_lands_once(
    command, nodes, network, tmp_path, how
):
    nodes.start("a", "b", "c")
    write_text(tmp_path, 6000)
    start(command, nodes, "--checkpoint", "0.3", p=3)
    until(lambda: checkpoint_of(command) >= 1)
    # cut for a second, which the network makes up for by itself
    network.cut("b")
    time.sleep(1.0)
    network.cut("b", False)
    began = time.monotonic()
    if how == "killed":
        nodes["b"].kill()
    else:
        network.cut("b")
    until(lambda: "b" not in hosts(command))
    assert time.monotonic() - began < 4.0  # 2.5 s by the driver's clock; a busy machine takes its time to tell
    until(lambda: status(command).get("phase") == "running")
    if how == "cut off":
        # its own processes end although nobody can tell them to, and the node is back when the link is
        until(lambda: "the driver is gone" in nodes["b"].said())
        until(lambda: len(nodes["b"].tree()) == 1)
        network.cut("b", False)
        until(lambda: "b" in hosts(command))
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    assert len(report_of(tmp_path)["restores"]) == 1
    assert "host b is lost" in err


def test_a_path_that_hosts_do_not_share_is_refused(command, nodes, tmp_path):
    nodes.start("a")
    write_text(tmp_path, 10)
    text = (tmp_path / "hosts.toml").read_text()
    (tmp_path / "hosts.toml").write_text(text.replace(str(tmp_path), "/mnt/elsewhere"))
    code, _, err = command.run("counted", *nodes.options, path="in.txt", out="out.jsonl")
    assert code == 2
    assert "sink 'out' lies at out.jsonl, which hosts.toml does not say is the same on all hosts" in err
    nodes.name_all()
    (tmp_path / "elsewhere").mkdir()
    mount = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(tmp_path / "elsewhere"))
    nodes.start("b", prefix=mount)
    code, _, err = command.run("counted", *nodes.options, path="in.txt", out="elsewhere/out.jsonl")
    assert code == 2
    assert "host b does not see in" in err
    assert "what this machine has just written there" in err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert all(node.process.poll() is None for node in nodes.nodes.values())


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
