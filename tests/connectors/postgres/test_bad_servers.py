"""Servers of PostgreSQL that refuse: TLS that is not there or not trusted, a disk that is full, a slot that goes away meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from http_receiver import certificate_of

from esault import EsaultError, SourceError, Topology, TopologyFailed, run
from esault.lookups import PostgresLookup
from esault.sinks import PostgresSink
from esault.sources import Items, PostgresChanges
from esault.topology.context import Context

CONNECTORS: list[Callable[[str], Any]] = [
    lambda dsn: PostgresSink(dsn, "t", {"k": str, "n": int}),
    lambda dsn: PostgresLookup(dsn, query="select 1 as k", key="k"),
    lambda dsn: PostgresChanges(dsn, "t", slot="s"),
]


@pytest.mark.parametrize("connector", CONNECTORS)
def test_tls_that_is_not_there_is_said(server, connector):
    with pytest.raises(EsaultError, match="does not support SSL.*or write another sslmode"):
        connector(f"{server.dsn} sslmode=require").check()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_a_certificate_that_is_not_trusted_is_said_and_one_that_is_named_is(server, tmp_path):
    certificate, key = certificate_of(tmp_path)
    for name, file in (("server.crt", certificate), ("server.key", key)):
        shutil.copy(file, server.data / name)
        server._give(server.data / name)
        (server.data / name).chmod(0o600)
    server.ask("alter system set ssl = on")
    server.ask("select pg_reload_conf()")
    other = tmp_path / "other"
    other.mkdir()
    unknown, _ = certificate_of(other)
    dsn = server.dsn.replace("127.0.0.1", "localhost")
    try:
        sink, lookup, _ = CONNECTORS
        for connector in (sink, lookup):
            with pytest.raises(EsaultError, match=r"(?s)certificate verify failed.*sslrootcert=PATH"):
                connector(f"{dsn} sslmode=verify-full sslrootcert={unknown}").check()
            connector(f"{dsn} sslmode=verify-full sslrootcert={certificate}").check()
    finally:
        server.ask("alter system reset ssl")
        server.ask("select pg_reload_conf()")


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be made by root alone")
def test_a_full_disk_ends_the_run_with_the_remedy_and_it_goes_on_with_resume(server, tmp_path):
    small = server.folder / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no small disk can be mounted here")
    name = f"t_{uuid.uuid4().hex[:8]}"
    try:
        server._give(small)
        server.ask(f"create tablespace {name}_small location '{small}'")
        server.ask(f"create table {name} (k text, n text) tablespace {name}_small")

        def topology():
            t = Topology("into")
            rows = Items([(f"k{n}", "x" * 1000) for n in range(2000)])
            t.spout("rows", rows).sink("out", PostgresSink(server.dsn, name, ["k", "n"]))
            return t

        options = {"engine": "local", "checkpoint": 0.05, "state": str(tmp_path / "state")}
        with pytest.raises(TopologyFailed, match="free space on the server's disk, then go on with --resume"):
            run(topology, **options)
        subprocess.run(["mount", "-o", "remount,size=50m", str(small)], check=True)
        run(topology, resume=True, **options)
        assert server.ask(f"select count(*), count(distinct k) from {name}") == [(2000, 2000)]
        assert server.ask(f"select count(*) from {name}_esault") == [(0,)]
    finally:
        server.ask(f"drop table if exists {name}, {name}_esault")
        server.ask(f"drop tablespace if exists {name}_small")
        subprocess.run(["umount", str(small)], check=True)


def test_a_slot_that_is_dropped_meanwhile_ends_the_run_with_the_remedy(server):
    table = f"orders_{uuid.uuid4().hex[:8]}"
    server.ask(f"create table {table} (id int primary key)")
    source = PostgresChanges(server.dsn, table, slot=f"s_{table}", snapshot="never")
    source.check()
    source.context = Context("changes")
    source.open(source.context)
    try:
        source.read(1)
        ended = "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %s"
        server.ask(ended, f"s_{table}")
        for _ in range(1000):
            if server.ask("select active from pg_replication_slots where slot_name = %s", f"s_{table}") == [(False,)]:
                break
        server.ask("select pg_drop_replication_slot(%s)", f"s_{table}")
        with pytest.raises(SourceError, match=r"is gone.*--restart"):
            for _ in range(10_000_000):
                source.read(1)
    finally:
        source.close()
        server.ask(f"drop publication if exists s_{table}")
