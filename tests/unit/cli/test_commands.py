"""What the command line says and how it ends, without starting anything."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from esault.cli.main import cli, main
from esault.errors import SinkError
from esault.runtime.process import run_dir


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out = capsys.readouterr()
    return ended.value.code, out.out, out.err


@pytest.fixture
def words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return "words.py"


def test_help_names_all_commands(capsys):
    code, out, _ = call(capsys, "--help")
    assert code == 0
    for name in ("new", "check", "run", "analyze", "bench"):
        assert name in out


@pytest.mark.parametrize("command", [["status"], ["stop"], ["logs"], ["checkpoint", "create", "--name", "s"]])
def test_a_run_is_named_alone_or_by_the_option_that_all_commands_have(capsys, monkeypatch, tmp_path, command):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(run_dir, "_parent", lambda: tmp_path)  # others may run topologies meanwhile
    monkeypatch.chdir(tmp_path)
    said = [call(capsys, *command, *named) for named in (["none"], ["--run", "none"], ["none", "--run", "none"])]
    assert said[0] == said[1] == said[2] and said[0][0] == 2
    code, _, error = call(capsys, *command, "a", "--run", "b")
    assert code == 2 and "'a' and --run b name two runs; write one of them" in error


def test_new_writes_a_topology_that_check_draws(words, capsys):
    assert call(capsys, "new", words)[0] == 0
    code, out, _ = call(capsys, "check", words)
    assert code == 0
    assert "spout TextFiles" in out
    assert "3 units, no mistakes found" in out


def test_check_asks_servers_and_files_where_that_is_wanted(words, tmp_path, capsys):
    (tmp_path / words).write_text(
        "from esault import Topology\nfrom esault.sinks import Collect\nfrom esault.sources import TextFiles\n"
        "def topology() -> Topology:\n    t = Topology('t')\n    t.spout('lines', TextFiles('nowhere.txt')).sink('out', Collect())\n    return t\n"
    )
    assert call(capsys, "check", words)[0] == 0
    code, _, err = call(capsys, "check", "--connect", words)
    assert code == 2 and "nowhere.txt" in err


def test_check_draws_for_a_page(words, capsys):
    call(capsys, "new", words)
    code, out, _ = call(capsys, "check", words, "--mermaid")
    assert code == 0
    assert out.startswith(("flowchart", "graph"))


def test_check_warns_where_units_say_that_they_do_not_fit_and_refuses_nothing(words, capsys):
    Path(words).write_text("""
from esault import Bolt, Topology, by_key
from esault.sinks import Collect
from esault.sources import TextFiles


class Count(Bolt[str, int, str, int]):
    def process(self, key, value):
        self.emit(key, value)


def topology():
    t = Topology("t")
    t.spout("lines", TextFiles("*.txt")).bolt("count", Count, by_key()).sink("out", Collect())
    return t
""")
    code, out, err = call(capsys, "check", words)
    assert code == 0
    assert "by_key() [str, str] → count" in out
    assert out.endswith("t: 2 units, 1 warning\n")
    assert err == "warning: unit 'count' takes [str, int], but what comes from 'lines' is [str, str]\n"


def test_new_does_not_overwrite(words, capsys):
    call(capsys, "new", words)
    code, _, err = call(capsys, "new", words)
    assert code == 2
    assert "exists already" in err


@pytest.mark.parametrize(("name", "text"), [("words.txt", "ends in .py"), ("my-words.py", "imported")])
def test_new_refuses_names_that_cannot_be_imported(words, capsys, name, text):
    code, _, err = call(capsys, "new", name)
    assert code == 2
    assert text in err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "nowhere.py"], "there is no file nowhere.py"),
        (["run", "words.py:nobody"], "nobody"),
        (["run", "words.py", "--set", "nonsense=1"], "nonsense"),
        (["run", "words.py", "--set", "path"], "path"),
        (["run", "words.py", "--parallelism", "count"], "UNIT=N"),
        (["run", "words.py", "--parallelism", "nobody=2"], "there is no unit 'nobody'; there are: lines, split, count"),
        (["run", "words.py", "--parallelism", "count=9"], "1 to 8"),
        (["run", "words.py", "--parallelism", "count=0"], "1 to 8"),
        (["run", "words.py", "--slots", "1"], "needs 2 slots"),
        (["run", "words.py", "--seconds", "0"], "above 0"),
        (["run", "words.py", "--set", "path=nothing/*.txt"], "nothing/*.txt"),
        (["run", "words.py", "--report", "/proc/none/r.json"], "cannot be written"),
        (["run", "words.py", "--engine", "flink"], "flink"),
        (["run", "words.py", "--master", "local"], "is for --engine spark"),
        (["run", "words.py", "--engine", "spark", "--acks", "off"], "the Spark engine has no acks"),
        (["run", "words.py", "--engine", "spark", "--policy", "ds2"], "Spark cannot change the number of tasks"),
        (
            ["run", "words.py", "--engine", "spark", "--land-metrics", "m"],
            "--land-metrics is for the engines actors and local",
        ),
        (["run", "words.py", "--land-metrics", "words.py"], "--land-metrics words.py: words.py/windows: "),
        (["run", "words.py", "--checkpoint", "-1"], "above 0"),
        (["run", "words.py", "--resume"], "say how often with --checkpoint"),
        (["run", "words.py", "--acks", "off", "--checkpoint", "1"], "with acks off there are no checkpoints"),
        (["run"], "TOPOLOGY"),
        (["dance"], "there is no command 'dance'; there are: new, check, plan"),
        (["rnu", "words.py"], "did you mean run?"),
        (["run", "words.py", "--fixed", "nobody"], "there is no unit 'nobody'"),
        (["run", "words.py", "--fixed", ""], "fixed names no unit"),
        (
            ["run", "words.py", "--fixed", "count=2", "--parallelism", "count=3"],
            "is fixed at 2, and parallelism says 3",
        ),
        (["run", "words.py", "--fixed", "count", "--policy", "count=probe"], "the policy probe would scale it"),
        (["run", "words.py", "--engine", "local", "--control", "127.0.0.1:0"], "is for the engine actors"),
        (["run", "words.py", "--engine", "local", "--audit", "asked"], "--audit asked is for the engine actors"),
        (
            ["plan", "words.py", "--report", "none.json", "--rate", "1"],
            "`esault run words.py --report none.json` writes one",
        ),
        (["analyze", "words.py", "--direct", "--follow"], "--direct keeps nothing"),
        (["analyze", "words.py", "--list", "--every", "5"], "leave out --list"),
        (["throttle", "count", "-1", "--for", "2"], "a number of tuples a second above 0"),
        (["analyze", "nowhere"], "there is no module 'nowhere'"),
        (["bench", "throughput", "--out", "x"], "checkout"),
        (["bench"], "checkout"),
        (["compact", "out", "--target-mb", "nan"], "nan is no finite number"),
        (["compact", "out", "--target-mb", "inf"], "inf is no finite number"),
        (["vacuum", "out", "--keep", "nan"], "nan is no finite number"),
        (["analyze", "words.py"], "lands no table"),
        (["analyze", "nowhere.py"], "there is no file nowhere.py"),
    ],
)
def test_wrong_use_ends_with_2_and_one_clear_message(words, capsys, arguments, text):
    if "spark" in arguments:
        pytest.importorskip("pyspark")
    call(capsys, "new", words)
    code, out, err = call(capsys, *arguments)
    assert code == 2
    assert text in out + err
    assert "Traceback" not in err


def test_a_topology_that_raises_shows_the_users_traceback(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("def topology():\n    return 1 / 0\n")
    code, _, err = call(capsys, "check", "broken.py")
    assert code == 2
    assert "ZeroDivisionError" in err
    assert 'broken.py", line 2' in err


def test_what_the_client_of_a_store_raised_is_said_in_one_line(monkeypatch, capsys):
    def refused(**_):
        try:
            raise RuntimeError("NoCredentialsError")
        except RuntimeError as error:
            raise SinkError("s3://b/t: no credentials; set AWS_ACCESS_KEY_ID") from error

    monkeypatch.setattr(cli, "main", refused)
    code, _, err = call(capsys, "analyze", "s3://b/t")
    assert (code, err) == (2, "error: s3://b/t: no credentials; set AWS_ACCESS_KEY_ID\n")


def test_an_address_is_no_place_for_what_is_made_of_tables(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyspark")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sales.py").write_text(
        "from esault import Topology\nfrom esault.sinks import SparkTable\nfrom esault.sources import Items\n"
        "def topology() -> Topology:\n    t = Topology('t')\n"
        "    t.spout('s', Items([('a', 1)])).sink('sales', SparkTable('out/sales', {'k': str, 'n': int}))\n    return t\n"
    )
    code, _, err = call(capsys, "analyze", "sales.py", "--into", "s3://b/x", "--list")
    assert (code, err) == (2, "error: s3://b/x: what is made of tables stands in folders; name one with --into DIR\n")


def test_a_parameter_that_does_not_fit_shows_no_frames(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "typed.py").write_text("def topology(n: int = 1):\n    return None\n")
    code, _, err = call(capsys, "check", "typed.py", "--set", "n=x")
    assert code == 2
    assert "parameter 'n': 'x' is not" in err
    assert "Traceback" not in err


def test_a_syntax_error_shows_its_place_and_none_of_our_frames(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.py").write_text("def topology(:\n    pass\n")
    code, _, err = call(capsys, "check", "wrong.py")
    assert code == 2
    assert 'wrong.py", line 1' in err and "SyntaxError" in err
    assert "located.py" not in err and "importlib" not in err


def test_what_spark_cannot_run_is_said_by_check(words, tmp_path, capsys):
    call(capsys, "new", words)
    code, out, _ = call(capsys, "check", words, "--engine", "spark")
    assert code == 0 and "no mistakes found" in out
    text = (tmp_path / words).read_text()
    (tmp_path / "twins.py").write_text(text.replace("grouping=by_key()", "grouping=by_key(), replicas=2"))
    assert call(capsys, "check", "twins.py", "--engine", "spark")[0] == 0  # they change no result: said when it runs
    (tmp_path / "splits.py").write_text(text.replace("TextFiles", "Directory"))
    code, _, err = call(capsys, "check", "splits.py", "--engine", "spark")
    assert code == 2
    assert (
        "cannot run on the Spark engine" in err and "Directory looks for new files" in err and "write every=None" in err
    )


def test_help_of_run_lists_the_topologys_parameters(words, capsys, monkeypatch):
    call(capsys, "new", words)
    asked = ["run", "--set", "out=x", words, "--help"]
    monkeypatch.setattr("sys.argv", ["esault", *asked])
    code, out, _ = call(capsys, *asked)
    assert code == 0
    assert "out: str = out/words.jsonl" in out


def test_a_unit_is_fixed_at_a_number_or_where_it_starts(words, capsys):
    call(capsys, "new", words)
    fixed = ["--engine", "local", "--parallelism", "count=2", "--fixed", "count", "--fixed", "split=3"]
    assert call(capsys, "run", words, "--report", "r.json", *fixed)[0] == 0
    units = json.loads(Path("r.json").read_text())["units"]
    assert [[n for _, n in units[name]["parallelism"]] for name in ("split", "count")] == [[3], [2]]


def test_a_report_for_which_there_is_no_room_any_more_is_said_and_shown(words, capsys, monkeypatch):
    call(capsys, "new", words)

    def full(path, *_, **__):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    code, _, err = call(capsys, "run", words, "--engine", "local", "--report", "r.json")
    assert code == 1
    assert "cannot be written to r.json (No space left on device)" in err and "words: drained" in err
    assert not list(Path().glob("r.json*"))


@pytest.mark.parametrize(
    ("start", "code", "said"),
    [
        ("exec >/dev/full", 1, "error: the output cannot be written: No space left on device"),
        ("exec >&- 2>&- <&-", 0, ""),
        ("export LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0", 0, ""),
    ],
)
@pytest.mark.parametrize("command", ["check words.py", "connectors"])  # by print, and by rich
def test_streams_that_cannot_be_written_show_no_frames(words, capsys, start, code, said, command):
    call(capsys, "new", words)
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        ["sh", "-c", f"{start}; exec {sys.executable} -m esault {command}"],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (done.returncode, done.stderr.strip()) == (code, said)


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "bench").mkdir()
    for name in ("speed", "size"):
        (tmp_path / "bench" / name).mkdir()
        (tmp_path / "bench" / name / "__main__.py").write_text("def main() -> None: ...\n")
    (tmp_path / "bench" / "kit").mkdir()
    (tmp_path / "bench" / "kit" / "measure.py").write_text("")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "say which bench: size, speed"),
        (["weight", "--out", "x"], "there is no bench 'weight'; there are: size, speed"),
        (["measure", "--out", "x"], "there are: size, speed"),
        (["speed"], "esault bench speed --out DIR"),
    ],
)
def test_benches_that_there_are_are_named(checkout, capsys, arguments, text):
    code, _, err = call(capsys, "bench", *arguments)
    assert code == 2
    assert text in err


def test_a_bench_takes_the_place_of_the_command_and_has_options_of_its_own(checkout, capsys, monkeypatch):
    import os
    import sys

    became = []

    def become(path, words):
        became.append((path, words))
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", become)
    call(capsys, "bench", "speed", "--quick", "--out", "x")
    call(capsys, "bench", "speed", "--peers", "all", "--out", "x")
    assert became == [
        (sys.executable, [sys.executable, "-m", "bench.speed", "--out", "x", "--quick"]),
        (sys.executable, [sys.executable, "-m", "bench.speed", "--out", "x", "--peers", "all"]),
    ]
