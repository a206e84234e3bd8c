"""Limits of control groups, as files say them."""

from __future__ import annotations

import pytest

from esault.runtime.process.memory_limit import MemoryLimit
from esault.runtime.process.usage import host_usage


@pytest.fixture
def groups(tmp_path):
    """Writes /proc/self/cgroup and the files of groups; says what is read."""

    def write(lines, files):
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc" / "cgroup").write_text(lines)
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return MemoryLimit(tmp_path / "proc", tmp_path / "cgroup")()

    return write


def v2(folder, limit, used, cache=0):
    return {
        f"{folder}memory.max": f"{limit}\n",
        f"{folder}memory.current": f"{used}\n",
        f"{folder}memory.stat": f"anon 5\ninactive_file {cache // 4}\nactive_file {cache - cache // 4}\n",
    }


def v1(folder, limit, used, cache=0):
    return {
        f"{folder}memory.limit_in_bytes": f"{limit}\n",
        f"{folder}memory.usage_in_bytes": f"{used}\n",
        f"{folder}memory.stat": f"cache 9\ntotal_inactive_file {cache // 4}\ntotal_active_file {cache - cache // 4}\n",
    }


def test_version_2_in_a_container_and_what_is_only_kept_for_room_does_not_count(groups):
    assert groups("0::/\n", v2("", 1000, 700, 200)) == (500, 1000)


def test_version_2_of_a_service_whose_slice_is_limited_closer(groups):
    files = {**v2("a.slice/b.service/", "max", 300), **v2("a.slice/", 1000, 900), **v2("", "max", 1)}
    assert groups("0::/a.slice/b.service\n", files) == (900, 1000)


def test_version_1_by_its_path_and_in_a_container_whose_path_is_the_host_s(groups):
    files = {**v1("memory/", 9223372036854771712, 5), **v1("memory/x/y/", 800, 100, 20)}
    assert groups("5:cpu:/x\n4:memory:/x/y\n0::/\n", files) == (80, 800)


def test_version_1_in_a_container(groups):
    assert groups("4:memory:/docker/123\n", v1("memory/", 800, 100)) == (100, 800)


@pytest.mark.parametrize("lines", ["", "nonsense\n", "0::/\n", "4:memory:/a\n"])
def test_without_limits_there_is_none(groups, lines):
    assert groups(lines, v2("", "max", 5)) is None


def test_a_limit_that_is_set_while_the_process_runs_is_seen(tmp_path):
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup" / "cgroup").write_text("0::/\n")
    for name, text in v2("", "max", 500).items():
        (tmp_path / "cgroup" / name).write_text(text)
    limit = MemoryLimit(tmp_path / "cgroup", tmp_path / "cgroup")
    assert limit() is None
    (tmp_path / "cgroup" / "memory.max").write_text("900\n")
    assert limit() == (500, 900)


def test_another_system_has_none(tmp_path):
    assert MemoryLimit(tmp_path / "none", tmp_path / "none")() is None


def test_the_host_s_memory_is_the_container_s_where_that_has_less_left(monkeypatch):
    whole = host_usage("a")()
    assert 0 < whole.memory < whole.memory_total
    monkeypatch.setattr("esault.runtime.process.usage.MemoryLimit", lambda: lambda: (50, 100))
    limited = host_usage("a")()
    assert (limited.memory, limited.memory_total) == (50, 100)
    monkeypatch.setattr("esault.runtime.process.usage.MemoryLimit", lambda: lambda: (0, 1 << 60))
    assert host_usage("a")().memory_total == whole.memory_total
