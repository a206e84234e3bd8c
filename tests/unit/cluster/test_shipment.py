"""Code on its way to other hosts."""

from __future__ import annotations

import dataclasses
import hashlib
from importlib import metadata

import pytest

from esault.cluster import shipment
from esault.cluster.messages import ShippedFile
from esault.cluster.shipment import check_versions, needed, relative, ship, unload
from esault.errors import UsageError


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "code"
    for name, text in {
        "flow.py": "import msgpack, sibling, json\nfrom esault import Bolt\n",
        "sibling.py": "def f():\n    import hypothesis.strategies\n",
        "pack/__init__.py": "",
        "pack/inner/deep.py": "x = 1\n",
        "data/notes.py": "not a package",
        "data.txt": "no code",
    }.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def test_a_file_takes_what_stands_beside_it(folder, tmp_path):
    files = ship(str(folder), str(folder / "flow.py"), None)
    assert [f.path for f in files] == ["flow.py", "sibling.py", "pack/__init__.py", "pack/inner/deep.py"]
    unload(files, tmp_path / "there")
    assert (tmp_path / "there/pack/inner/deep.py").read_text() == "x = 1\n"
    assert relative(str(folder / "flow.py"), str(folder)) == "flow.py"
    assert relative(None, str(folder)) is None


def test_a_module_takes_the_package_it_begins_with(folder):
    assert [f.path for f in ship(str(folder), None, "pack.inner.deep")] == ["pack/__init__.py", "pack/inner/deep.py"]
    assert [f.path for f in ship(str(folder), None, "sibling")] == ["sibling.py"]
    assert ship(str(folder), None, "msgpack") == ()


def test_small_files_that_code_reads_go_along(folder, tmp_path):
    for name, text in {
        "settings.yaml": "a: 1",
        "input.csv": "a,b",
        ".secret.yaml": "b: 2",
        "pack/defaults.toml": "c = 3",
        "pack/sql/all.sql": "select 1",
        "pack/.cache/x.json": "{}",
        "pack/large.json": "1" * (shipment.MOST_OF_ONE + 1),
        "pack/model.bin": "0",
        "msgpack.yaml": "which is named as a package that is imported",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    files = ship(str(folder), str(folder / "flow.py"), None)
    small = [f.path for f in files if not f.path.endswith(".py")]
    assert small == ["msgpack.yaml", "settings.yaml", "pack/defaults.toml", "pack/sql/all.sql"]
    assert [f.path for f in ship(str(folder), None, "pack.inner.deep")][2:] == [
        "pack/defaults.toml",
        "pack/sql/all.sql",
    ]
    unload(files, tmp_path / "there")
    assert (tmp_path / "there/pack/sql/all.sql").read_text() == "select 1"
    assert needed(files, "flow.py") == {name: metadata.version(name) for name in ("hypothesis", "msgpack")}


def test_small_files_beyond_the_bound_stay_where_they_are(folder, monkeypatch):
    (folder / "settings.yaml").write_text("a: 1")
    (folder / "pack/a.sql").write_text("select 1")
    monkeypatch.setattr(shipment, "MOST_READ", 1)
    assert [f.path for f in ship(str(folder), str(folder / "flow.py"), None)][-1] == "settings.yaml"
    monkeypatch.setattr(
        shipment, "MOST_BYTES", sum(len(f.data) for f in ship(str(folder), str(folder / "flow.py"), None)) - 1
    )
    assert [f.path for f in ship(str(folder), str(folder / "flow.py"), None)][-1] == "pack/inner/deep.py"


def test_what_is_not_what_was_sent_or_goes_elsewhere_is_not_written(folder, tmp_path):
    (file, *_) = ship(str(folder), str(folder / "flow.py"), None)
    with pytest.raises(UsageError, match=r"flow.py is not what was sent"):
        unload([dataclasses.replace(file, data=b"import os")], tmp_path / "there")
    for path in ("../x.py", "/x.py", ""):
        with pytest.raises(UsageError, match="outside"):
            unload([ShippedFile(path, hashlib.sha256(b"").hexdigest(), b"")], tmp_path / "there")
    assert not list(tmp_path.glob("**/x.py"))
    for path in ("a\0b.py", "flow.py/x.py"):  # which no folder takes
        with pytest.raises(UsageError, match="cannot be written"):
            unload([file, ShippedFile(path, hashlib.sha256(b"").hexdigest(), b"")], tmp_path / "there")


def test_too_much_code_is_a_mistake_that_is_told(folder, monkeypatch):
    monkeypatch.setattr(shipment, "MOST_FILES", 3)
    with pytest.raises(UsageError, match="4 Python files"):
        ship(str(folder), str(folder / "flow.py"), None)
    monkeypatch.setattr(shipment, "MOST_FILES", 10)
    monkeypatch.setattr(shipment, "MOST_BYTES", 10)
    with pytest.raises(UsageError, match="take more than"):
        ship(str(folder), str(folder / "flow.py"), None)


def test_a_distribution_is_found_by_what_it_declares_or_by_the_files_that_it_lists(folder, tmp_path, monkeypatch):
    for name, files in {
        "Declared": {"top_level.txt": "msg_flow\n_flow\n", "RECORD": "sibling_flow/__init__.py,,\n"},
        "listed": {"RECORD": "listed_flow/inner.py,sha256=x,3\nother/sibling_flow/a.py,,\nsibling_flow_2.py,,\n"},
        "single": {"RECORD": "sibling_flow.py,,\n"},
        "compiled": {"RECORD": "compiled_flow.cpython-311-x86_64-linux-gnu.so,sha256=y,9\nlisted_flow.libs/z.so,,\n"},
        "nothing": {},
    }.items():
        info = tmp_path / "site" / f"{name.lower()}-1.5.dist-info"
        info.mkdir(parents=True)
        for file, text in {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n", **files}.items():
            (info / file).write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "site")

    def found(*names):
        (folder / "other.py").write_text("".join(f"import {name}\n" for name in names))
        return needed(ship(str(folder), None, "other"), "other")

    assert found("msg_flow") == found("_flow") == {"Declared": "1.5"}
    assert found("listed_flow.inner") == {"listed": "1.5"}
    assert found("sibling_flow") == {"single": "1.5"}
    assert found("sibling_flow", "compiled_flow", "sibling") == {"compiled": "1.5", "single": "1.5"}
    assert found("flow_that_is_nowhere") == {}


def test_versions_of_what_is_imported_are_compared(folder):
    (folder / "other.py").write_text("import numpy, pyarrow")  # which the topology does not import
    wanted = needed(ship(str(folder), str(folder / "flow.py"), None), "flow.py")
    assert needed(ship(str(folder), None, "sibling"), "sibling") == {"hypothesis": metadata.version("hypothesis")}
    assert needed((), "msgpack.inner") == {"msgpack": metadata.version("msgpack")}
    assert wanted == {name: metadata.version(name) for name in ("hypothesis", "msgpack")}
    check_versions(wanted, "b")
    with pytest.raises(UsageError, match=r"host b .*msgpack is .* there and 0.1 here; no-such-thing 1.0 is missing"):
        check_versions({"msgpack": "0.1", "no-such-thing": "1.0"}, "b")
