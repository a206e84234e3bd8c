"""Keys: who has it gets in, who has not does not."""

from __future__ import annotations

import os
import socket
import stat
import threading

import pytest

from esault.cluster.connection import Connection, Lost, call, listen
from esault.cluster.key import ClusterKey, loopback_key, make_key
from esault.cluster.messages import ClockRequest, Heartbeat, Nodes
from esault.cluster.tls import Refused
from esault.errors import UsageError


@pytest.fixture
def key(tmp_path):
    return ClusterKey(make_key(tmp_path / "key"))


def test_a_key_is_for_its_owner_alone_and_never_overwritten(tmp_path):
    path = make_key(tmp_path / "key")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is there already"):
        make_key(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["key"]


def test_what_is_no_key_is_named(tmp_path):
    with pytest.raises(UsageError, match="esault keys"):
        ClusterKey(tmp_path / "none")
    path = make_key(tmp_path / "open")
    path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        ClusterKey(path)
    bad = tmp_path / "bad"
    bad.touch(0o600)
    with pytest.raises(UsageError, match="no key made by"):
        ClusterKey(bad)
    with pytest.raises(UsageError, match="cannot be written"):
        make_key(tmp_path / "no" / "folder" / "key")


def test_this_users_own_key_is_made_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert loopback_key() == loopback_key() == tmp_path / "esault" / "loopback.key"
    ClusterKey(loopback_key())


@pytest.mark.parametrize(("home", "said"), [(None, "has no home folder"), ("a-file", "a-file/.local/state/esault")])
def test_a_user_without_a_home_is_told_what_to_name(tmp_path, monkeypatch, home, said):
    (tmp_path / "a-file").touch()
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    if home is None:
        monkeypatch.setattr("os.path.expanduser", str)  # as of a user id that the machine does not know
    else:
        monkeypatch.setenv("HOME", str(tmp_path / home))
    with pytest.raises(UsageError, match=f"{said}.*name .* by XDG_STATE_HOME"):
        loopback_key()


class Host:
    """Accepts one connection and answers each letter with itself; keeps what went wrong."""

    def __init__(self, key):
        self.listener = listen("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        self.error = None
        self.thread = threading.Thread(target=self.serve, args=(key,))
        self.thread.start()

    def serve(self, key):
        self.listener.setblocking(True)
        made, _ = self.listener.accept()
        self.listener.close()
        connection = Connection(made, key.server, server=True)
        try:
            while True:
                connection.wait(5)
                for letter in connection.receive():
                    connection.send(letter)
        except (Lost, Refused) as error:
            self.error = error
        finally:
            connection.close()

    def ended_with(self):
        self.thread.join(10)
        return self.error


def test_letters_of_all_sizes_come_back_between_holders_of_one_key(key):
    host = Host(key)
    mine = call("127.0.0.1", host.port, key.client, 5)
    for letter in (Heartbeat(), Nodes((), True), ("x" * 3_000_000, 5)):
        assert mine.ask(letter, 10) == letter
    mine.close()
    assert isinstance(host.ended_with(), Lost)


def test_news_that_come_before_an_answer_are_kept(key):
    host = Host(key)
    caller = call("127.0.0.1", host.port, key.client, 5)
    news = [Nodes((), False), Nodes((), True)]
    for each in news:
        caller.send(each)  # which the host says back, before it is asked for anything
    assert caller.ask(ClockRequest(7), 5, ClockRequest) == ClockRequest(7)
    assert caller.wait(0) == [caller.fileno()]  # they are there, whatever the socket says
    assert caller.receive() == news
    assert caller.ask(Heartbeat(), 5) == Heartbeat()
    caller.close()
    assert isinstance(host.ended_with(), Lost)


def test_another_key_is_refused_on_both_sides_in_clear_words(key, tmp_path):
    host = Host(key)
    other = ClusterKey(make_key(tmp_path / "other"))
    with pytest.raises((Refused, Lost), match="another key"):
        call("127.0.0.1", host.port, other.client, 5)
    error = host.ended_with()
    assert isinstance(error, Refused)
    assert "another key" in str(error)


@pytest.mark.parametrize(
    "said", [b"GET / HTTP/1.1\r\n\r\n", b"\x80\x04\x95" + bytes(100), bytes(5000), b"\x16\x03\x01\x00\x05hello"]
)
def test_who_does_not_speak_tls_is_refused(key, said):
    host = Host(key)
    with socket.create_connection(("127.0.0.1", host.port)) as stranger:
        stranger.sendall(said)
        stranger.settimeout(5)
        try:
            while stranger.recv(4096):
                pass
        except ConnectionError:
            pass
    assert isinstance(host.ended_with(), Refused)


def test_an_older_tls_is_refused(key):
    import ssl

    host = Host(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", host.port)) as stranger, pytest.raises((ssl.SSLError, OSError)):
        context.wrap_socket(stranger).recv(1)
    assert isinstance(host.ended_with(), Refused)


def test_without_a_certificate_nobody_gets_in(key):
    import ssl

    host = Host(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", host.port)) as stranger, pytest.raises((ssl.SSLError, OSError)):
        with context.wrap_socket(stranger) as wrapped:
            wrapped.sendall(b"hello")
            assert not wrapped.recv(1)
        raise OSError("hung up on")
    assert isinstance(host.ended_with(), Refused)


def test_nobody_there_is_told_in_time(key):
    with pytest.raises(Lost):
        call("127.0.0.1", 1, key.client, 2)
