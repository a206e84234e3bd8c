"""Three hosts whose links delay and drop frames, and are cut: each run counted exactly. The relay is the tests' own (`relay.py`)."""

from __future__ import annotations

import time

import depth
import pytest
from namespaces import RelayedNetwork, why_not
from nodes import Nodes
from test_checkpointed_runs import check, wanted, write_text
from test_hosts import hosts_of
from test_hosts_come_and_go import checkpoint_of, end, hosts, report_of, start
from waiting import until

pytestmark = pytest.mark.slow
REASON = why_not()
if REASON is not None:
    pytest.skip(REASON, allow_module_level=True)

#: seconds, the most by chance beside them, and the share of frames that are lost
BAD = (0.03, 0.01, 0.015)


@pytest.fixture(scope="module")
def network():
    made = RelayedNetwork("driver", "a", "b", "c")
    yield made
    made.remove()


@pytest.fixture
def nodes(tmp_path, network):
    made = Nodes(tmp_path, network)
    network.suffer(*BAD)
    made.start("a", "b", "c")
    yield made
    network.suffer()
    for name in "abc":
        network.cut(name, False)
    made.end()


@pytest.fixture
def command(command, network):
    command.prefix = network.on("driver")
    return command


def test_a_unit_is_split_over_links_that_delay_and_lose_and_a_host_is_cut_off_twice(command, nodes, network, tmp_path):
    write_text(tmp_path, 1200)
    before = network.order("count")
    start(command, nodes, "--checkpoint", "0.5", p=2)
    command.scale("count", 5)
    until(lambda: checkpoint_of(command) >= 1)
    # shorter than the lease: TCP makes up for it
    network.cut("b")
    time.sleep(1.0)
    network.cut("b", False)
    passed = checkpoint_of(command)
    until(lambda: checkpoint_of(command) > passed)
    assert set(hosts(command)) == {"a", "b", "c"}
    # and longer: the host is given up, and comes back
    network.cut("b")
    until(lambda: "b" not in hosts(command))
    until(lambda: command.status().get("phase") == "running")
    network.cut("b", False)
    until(lambda: "b" in hosts(command))
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = report_of(tmp_path)
    assert [(c["unit"], c["from"], c["to"]) for c in report["changes"]] == [("count", 2, 5)]
    assert len(report["restores"]) == 1, err
    assert err.count("host b is lost:") == 1, err
    after = network.order("count")
    assert after["lost"] > before["lost"], "the links lost frames"
    assert after["cut"] > before["cut"]


@depth.deep("links that are cut for a while, above")
def test_hosts_that_do_not_reach_each_other_for_a_while_lose_and_repeat_nothing(command, nodes, network, tmp_path):
    """The driver reaches both: nobody is given up, and what is on its way comes late."""
    write_text(tmp_path, 3000)
    network.suffer(*BAD[:2])  # a try that is lost as well would take TCP twice as long again
    start(command, nodes, p=3)
    until(lambda: sum(sum(host["sent"].values()) for host in hosts(command).values()) > 10_000)
    network.part("a", "b")
    time.sleep(5.0)
    network.part("a", "b", False)
    command.scale("count", 4)
    err = end(command)
    check(tmp_path / "out.jsonl", wanted(tmp_path))
    report = report_of(tmp_path)
    assert hosts_of(report, "count") == {"a", "b", "c"}
    assert (report["deaths"], report["roots"]["replayed"]) == (0, 0), err
