"""Servers of NATS that refuse: TLS that is not there or not trusted, and a disk that is full."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import socket
import ssl
import threading
import time

import nats_server
import pytest
from http_receiver import certificate_of

from esault import EsaultError
from esault.sinks import NatsSink
from esault.sources import NatsSource
from esault.topology.context import Context
from esault.topology.sink import Row

CONNECTORS = [NatsSource, lambda stream, url: NatsSink(stream, f"{stream}.x", url)]


@pytest.mark.parametrize("connector", CONNECTORS)
def test_a_server_without_tls_is_not_told_the_password_where_tls_is_asked_for(server, connector):
    stream = server.stream()
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as door:

        def hand_on():
            here, _ = door.accept()
            with here, socket.create_connection(("127.0.0.1", server.port)) as there:
                here.sendall(there.recv(65536))
                heard.append(here.recv(65536))

        thread = threading.Thread(target=hand_on)
        thread.start()
        url = server.url.replace("nats:", "tls:").replace(str(server.port), str(door.getsockname()[1]))
        with pytest.raises(EsaultError, match="the server speaks no TLS; correct the port of .*, or write nats://"):
            connector(stream, url).check()
        thread.join()
    assert heard == [b""]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_a_certificate_that_is_not_trusted_is_said_and_one_that_is_named_is(tmp_path, monkeypatch):
    certificate, key = certificate_of(tmp_path)
    try:
        running = nats_server.running("--tls", "--tlscert", certificate, "--tlskey", key)
        server = running.__enter__()
    except nats_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        url = server.url.replace("nats:", "tls:").replace("127.0.0.1", "localhost")
        known = {"tls": ssl.create_default_context(cafile=certificate)}
        for connector in CONNECTORS:
            with pytest.raises(EsaultError, match="is not trusted: name its authority's file by SSL_CERT_FILE"):
                connector("S", url).check()
        with pytest.raises(EsaultError, match="stream not found; make it"):
            NatsSource("S", url, options=known).check()
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        for connector in CONNECTORS:
            with pytest.raises(EsaultError, match="stream not found; make it"):
                connector("S", url).check()
    finally:
        running.__exit__(None, None, None)


def test_a_server_whose_disk_is_full_is_waited_for_and_has_each_once(tmp_path, caplog):
    settings = tmp_path / "nats.conf"
    settings.write_text("jetstream {max_file_store: 1MB}\n")
    try:
        running = nats_server.running("-c", str(settings))
        server = running.__enter__()
    except nats_server.NotToBeHadError as error:
        pytest.skip(str(error))
    try:
        filler, stream = (server.stream(discard="new") for _ in range(2))
        with contextlib.suppress(Exception):
            server.send(filler, [("x", b"x" * 100_000)] * 20)  # no more goes in
        sink = NatsSink(stream, f"{stream}.rows", server.url)
        sink.open(Context("out", run="run", lineage="folder", logger=logging.getLogger("esault.nats.full")))
        sink.write([Row("k", f"{number} {'x' * 1000}", 0.0, f"r{number}") for number in range(400)])
        done = sink.commit(1, sink.prepare(1).result(20))
        while not any("takes no messages" in record.message for record in caplog.records):
            assert not done.done()
            time.sleep(0.01)
        server.ask(lambda js: js.purge_stream(filler))
        done.result(30)
        sink.close()
        kept = [json.loads(message.data).partition(" ")[0] for message in server.messages(stream)]
        assert sorted(map(int, kept)) == list(range(400))
    finally:
        running.__exit__(None, None, None)


USERS = """
authorization { users = [
  {user: alice, password: wonder}
  {user: bob, password: wonder, permissions: {publish: ["$JS.API.>", "_INBOX.>"]}}
  {user: eve, password: wonder, permissions: {subscribe: ["nothing"]}}
  {user: jim, password: wonder, permissions: {publish: ["nothing"]}}
] }
"""


@pytest.fixture
def with_users(tmp_path):
    (tmp_path / "nats.conf").write_text(USERS)
    try:
        with nats_server.running("-c", str(tmp_path / "nats.conf")) as found:
            yield found
    except nats_server.NotToBeHadError as error:
        pytest.skip(str(error))


def test_what_the_user_may_not_do_is_said_and_not_waited_for(with_users):
    stream = with_users.stream()
    for user, what in (("eve", "subscription"), ("jim", r"publish to \"\$js.api")):
        for connector in CONNECTORS:
            with pytest.raises(EsaultError, match=f"permissions violation for {what}.*; allow it for this user"):
                connector(stream, with_users.url.replace("alice", user)).check()
    sink = NatsSink(stream, f"{stream}.x", with_users.url.replace("alice", "bob"))
    sink.check()
    sink.open(Context("out", run="run", lineage="folder", logger=logging.getLogger("esault.nats.test")))
    sink.write([Row("k", 1, 0.0, "r")])
    done = sink.commit(1, sink.prepare(1).result(20))
    with pytest.raises(EsaultError, match="permissions violation for publish to .*; allow it for this user"):
        done.result(20)
    sink.close()
