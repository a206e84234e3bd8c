"""Servers of Redis that refuse: TLS that is not there or not trusted, a full memory, a disk that takes nothing."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid

import pytest
import redis_server
from http_receiver import certificate_of

from esault import EsaultError, SinkError, SourceError, Topology, TopologyFailed, run
from esault.connectors.redis import client
from esault.lookups import RedisLookup
from esault.sinks import RedisSink
from esault.sources import Items, RedisSource

CONNECTORS = [RedisSink, RedisSource, lambda name, url: RedisLookup(f"{name}:{{}}", url)]


def written(server, count=20):
    def topology():
        t = Topology("into")
        t.spout("rows", Items([("k", "x" * 1000)] * count)).sink("out", RedisSink(f"s-{uuid.uuid4().hex}", server.url))
        return t

    run(topology, engine="local")


@pytest.mark.parametrize("connector", CONNECTORS)
def test_a_server_that_speaks_no_tls_is_not_waited_for_long(server, connector, monkeypatch):
    monkeypatch.setattr(client, "_ANSWER_ONCE_WITHIN", 0.5)
    with pytest.raises(EsaultError, match="or write redis:// if it does not speak TLS there"):
        connector("orders", server.url.replace("redis:", "rediss:")).check()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_a_certificate_that_is_not_trusted_is_said_and_one_that_is_named_is(tmp_path):
    certificate, key = certificate_of(tmp_path)
    port = redis_server.free_port()
    options = {"tls-port": str(port), "tls-cert-file": certificate, "tls-key-file": key, "tls-auth-clients": "no"}
    try:
        running = redis_server.running(**options)
        server = running.__enter__()
    except redis_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        url = f"rediss://:{redis_server.PASSWORD}@localhost:{port}/0"
        for connector in CONNECTORS:
            with pytest.raises(EsaultError, match=r"not trusted: name its authority's file by \?ssl_ca_certs=PATH"):
                connector("orders", url).check()
            connector("orders", f"{url}?ssl_ca_certs={certificate}").check()
            with pytest.raises(EsaultError, match="start the server, or mend host and port"):
                connector(
                    "orders", server.url.replace(str(server.port), str(port))
                ).check()  # no TLS where it is asked for
    finally:
        running.__exit__(None, None, None)


def test_a_server_that_stands_still_holds_up_who_asks_once_and_then_for_a_moment(monkeypatch, caplog):
    """Connections are taken by the system, and nothing answers: a data loop that asks is to go on with all else."""
    monkeypatch.setattr("esault.connectors.redis.client._SIGN_WITHIN", 0.05)
    took = []
    with socket.create_server(("127.0.0.1", 0)) as still:
        asks = client.Client("Source", SourceError, f"redis://127.0.0.1:{still.getsockname()[1]}", 60.0, 2.0)
        while len(took) < 4:
            began = time.monotonic()
            assert asks.attempt(lambda connection: connection.xlen("s")) == (False, None)
            if time.monotonic() - began > 0.04:  # it was asked
                took.append(time.monotonic() - began)
            time.sleep(0.01)
        asks.close()
    assert took[0] >= 2.0 > max(took[1:])
    assert caplog.text.count("waits for the server") == 1


def test_a_full_memory_ends_the_run_with_the_remedy(server):
    server.client.config_set("maxmemory", "1")
    try:
        with pytest.raises((SinkError, TopologyFailed), match="raise maxmemory or trim the stream"):
            written(server)
    finally:
        server.client.config_set("maxmemory", "0")
    written(server)


@pytest.mark.skipif(os.geteuid() != 0, reason="a small disk can be made by root alone")
def test_a_full_disk_ends_the_run_with_the_remedy_and_it_goes_on_with_resume(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        with redis_server.running(dir=str(small), appendfsync="everysec") as server:  # by "always" it ends itself

            def topology():
                t = Topology("into")
                rows = Items([(f"k{n}", "x" * 1000) for n in range(2000)])
                t.spout("rows", rows).sink("out", RedisSink("out", server.url))
                return t

            options = {"engine": "local", "checkpoint": 0.05, "state": str(tmp_path / "state")}
            with pytest.raises(TopologyFailed, match="free space on the server's disk, then go on with --resume"):
                run(topology, **options)
            subprocess.run(["mount", "-o", "remount,size=50m", str(small)], check=True)
            while server.client.info("persistence")["aof_last_write_status"] != "ok":
                time.sleep(0.05)
            run(topology, resume=True, **options)
            keys = [entry["key"] for entry in server.entries("out")]
            assert len(keys) == len(set(keys)) == 2000
    finally:
        subprocess.run(["umount", str(small)], check=True)
