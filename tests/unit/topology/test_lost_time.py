"""Event time that ends where a stream without it is joined."""

from __future__ import annotations

from esault import Bolt, Topology
from esault.cli.main import main
from esault.sources import Items
from esault.topology.doubts import lost_times
from esault.windows import TumblingWindow


class Count(Bolt):
    def process(self, key, value):
        pass


def topology(with_time=False, before=False):
    t = Topology("t")
    orders = t.spout("orders", Items([]), time=float, lateness=5)
    customers = t.spout("customers", Items([]), **({"time": float} if with_time else {}))
    joined = orders.join_table("joined", customers).map(lambda pair: pair[0])
    (orders if before else joined).window("window", Count, TumblingWindow(60), time=float)
    return t


def test_it_is_said_which_stream_has_none_and_what_to_do():
    (said,) = lost_times(topology().plan())
    assert said.startswith(
        "event time of 'orders' does not go on to 'joined', since 'customers' has none: it begins anew"
    )


def test_nothing_is_said_where_all_have_a_time_or_the_window_is_before_the_join():
    assert lost_times(topology(with_time=True).plan()) == []
    assert lost_times(topology(before=True).plan()) == []


def test_check_warns_of_it(tmp_path, capsys):
    file = tmp_path / "lost.py"
    file.write_text(
        "from esault import Bolt, Topology\nfrom esault.sources import Items\nfrom esault.windows import TumblingWindow\n"
        "class Count(Bolt):\n    def process(self, key, value): pass\n"
        "def topology():\n    t = Topology('t')\n    a = t.spout('a', Items([]), time=float)\n    b = t.spout('b', Items([]))\n"
        "    a.join_table('j', b).map(lambda p: p[0]).window('w', Count, TumblingWindow(1), time=float)\n    return t\n"
    )
    try:
        main(["check", str(file)])
    except SystemExit as ended:
        assert not ended.code
    said = capsys.readouterr()
    assert "warning: event time of 'a' does not go on to 'j'" in said.err and "1 warning" in said.out
