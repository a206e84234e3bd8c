"""The key of a cluster: its holders belong to the cluster, and no other gets in.

A key file is PEM: a private key (Ed25519), its certificate, and certificates of other cluster keys that are accepted as well. A cluster's
key has signed its certificate itself. A key with a role has one that the cluster's key has signed: it lets its holder look, scale or run,
and never be a node. Both ends of each connection show their certificate: TLS 1.3 does the rest. Making a key needs the package
`cryptography`, using one needs the standard library alone.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import ssl
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from esault.errors import UsageError
from esault.state_home import make_state_home

__all__ = ["CLUSTER", "ROLES", "ClusterKey", "Peer", "loopback_key", "make_key", "make_role_key", "retire", "succeed"]

#: what a key lets its holder do, each all of those before it: look at nodes and runs, change how many sub-units there are and how fast
#: they go, start and end runs
ROLES = ("look", "scale", "run")
#: what the holder of the cluster's key is
CLUSTER = "cluster"
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
#: how the file of a key with a role begins
_ROLE = "# a key of esault with the role "
#: a certificate holds from the first to the second year: clocks need not agree, and a key is changed by hand
_FROM, _UNTIL = 2000, 9999


@dataclass(frozen=True)
class Peer:
    """The holder of the other end of a connection."""

    role: str
    #: the name that a key with a role was made for
    name: str = ""
    #: the beginning of its certificate's SHA-256
    fingerprint: str = ""

    def may(self, role: str) -> bool:
        """Return whether it has this role, or one that is more."""
        ranks = (*ROLES, CLUSTER)
        return self.role in ranks and ranks.index(self.role) >= ranks.index(role)

    def __str__(self) -> str:
        return " ".join(word for word in (self.role, self.name, self.fingerprint) if word)


class ClusterKey:
    """A key file that was read and checked. It is read anew when it has changed, so that a key is replaced under what runs."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises UsageError, naming file and remedy, when it cannot be used."""
        self.path = os.path.abspath(path)
        self._read = self._seen()
        self._client, self._server, self._accepted = self._load(path)

    @property
    def client(self) -> ssl.SSLContext:
        """The context of an end that calls."""
        self._look()
        return self._client

    @property
    def server(self) -> ssl.SSLContext:
        """The context of an end that is called."""
        self._look()
        return self._server

    @property
    def is_cluster(self) -> bool:
        """Return whether it is a cluster's key, not one with a role."""
        return _blocks(Path(self.path).read_text(encoding="ascii"))[0] in self._accepted

    def peer(self, connection: ssl.SSLObject | ssl.SSLSocket) -> Peer:
        """Return who holds the other end, whose handshake is over."""
        shown = connection.getpeercert(True) or b""
        fingerprint = hashlib.sha256(shown).hexdigest()[:12]
        if shown in self._accepted:
            return Peer(CLUSTER, "", fingerprint)
        decoded: Any = connection.getpeercert() or {}
        said = {name: value for group in decoded.get("subject", ()) for name, value in group}
        return Peer(said.get("organizationalUnitName", ""), said.get("commonName", ""), fingerprint)

    def _seen(self) -> tuple[int, int, int]:
        try:
            status = os.stat(self.path)
        except OSError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_ino, status.st_size)

    def _look(self) -> None:
        seen = self._seen()
        if seen == self._read:
            return
        self._read = seen
        log = logging.getLogger("esault")
        try:
            self._client, self._server, self._accepted = self._load(self.path)
        except UsageError as error:  # it is being copied there, or by mistake: what was read before stands
            log.warning("%s; what was read of it before is used", error)
        else:
            log.warning("the key %s has changed: %d cluster key(s) are accepted now", self.path, len(self._accepted))

    def _load(self, path: str | os.PathLike[str]) -> tuple[ssl.SSLContext, ssl.SSLContext, frozenset[bytes]]:
        text = _text(path)
        shown, *others = _blocks(text) or [b""]
        # a certificate with a role is no anchor: it would be accepted by itself
        accepted = others if text.startswith(_ROLE) else [shown, *others]
        pem = "".join(map(ssl.DER_cert_to_PEM_cert, accepted))
        return (
            self._context(ssl.PROTOCOL_TLS_CLIENT, pem),
            self._context(ssl.PROTOCOL_TLS_SERVER, pem),
            frozenset(accepted),
        )

    def _context(self, protocol: int, accepted: str) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # hosts are told by the key, not by names
        context.verify_mode = ssl.CERT_REQUIRED
        if protocol == ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0  # connections are not resumed, and a link reads nothing
        try:
            context.load_cert_chain(self.path)
            context.load_verify_locations(cadata=accepted)
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(f"{self.path} is no key made by `esault keys`: {error}") from None
        return context


def _text(path: str | os.PathLike[str]) -> str:
    """The content of a key file. Raises UsageError."""
    try:
        mode = os.stat(path).st_mode
        text = Path(path).read_text(encoding="ascii")
    except FileNotFoundError:
        raise UsageError(
            f"there is no key {path}; make one with `esault keys {path}` and copy it to all hosts"
        ) from None
    except (OSError, UnicodeError) as error:
        raise UsageError(f"the key {path} cannot be read: {error}") from None
    if mode & 0o077:
        raise UsageError(f"the key {path} can be read by other users of this machine: chmod 600 {path}")
    return text


def _blocks(text: str) -> list[bytes]:
    """The certificates in a key file, in order. Raises UsageError."""
    try:
        return [ssl.PEM_cert_to_DER_cert(_CERTIFICATE + part.rstrip()) for part in text.split(_CERTIFICATE)[1:]]
    except ValueError as error:
        raise UsageError(f"this is no key made by `esault keys`: {error}") from None


def make_key(path: str | os.PathLike[str]) -> Path:
    """Write the key of a new cluster, for this user's eyes only. Raises UsageError when there is a file, or none can be made."""
    return _write_new(path, _new_key())


def make_role_key(path: str | os.PathLike[str], role: str, name: str, cluster: str | os.PathLike[str]) -> Path:
    """Write a key with a role in the cluster of this key, which signs it. `name`: whom it is for, as audit logs say it. Raises UsageError."""
    text = _text(cluster)
    if role not in ROLES:
        raise UsageError(f"there is no role {role!r}; there are: {', '.join(ROLES)}")
    if text.startswith(_ROLE):
        raise UsageError(f"{cluster} has a role itself: keys with roles are made by the cluster's key")
    return _write_new(path, f"{_ROLE}{role}\n".encode() + _new_key(role, name, text) + _certificates(text))


def succeed(path: str | os.PathLike[str], old: str | os.PathLike[str]) -> Path:
    """Write the key that is to follow `old`, each of which accepts the other from now on. Raises UsageError."""
    text = _text(old)
    if text.startswith(_ROLE):
        raise UsageError(f"{old} has a role: make a new one by the cluster's new key")
    made = _new_key()
    written = _write_new(path, made + _certificates(text))
    _replace(old, text.encode() + _certificates(made.decode()))
    return written


def retire(path: str | os.PathLike[str]) -> Path:
    """Leave in a key file its own certificate alone: other keys are accepted no more. Raises UsageError."""
    text = _text(path)
    if text.startswith(_ROLE):
        raise UsageError(f"{path} has a role: it knows the cluster by the certificates in it")
    first, second, *_ = [*text.split(_CERTIFICATE), ""]
    _replace(path, (first + _CERTIFICATE + second).encode())
    return Path(path)


def loopback_key() -> Path:
    """This user's own key, for nodes of this machine alone that were given none; made when it is first asked for."""
    path = make_state_home() / "loopback.key"
    if not path.exists():
        try:
            make_key(path)
        except UsageError:
            if not path.exists():  # else another command was quicker
                raise
    return path


def _certificates(text: str) -> bytes:
    return "".join(map(ssl.DER_cert_to_PEM_cert, _blocks(text))).encode()


def _write_new(path: str | os.PathLike[str], data: bytes) -> Path:
    target = Path(path)
    try:
        draft = _draft(target, data)
        try:
            os.link(draft, target)  # fails where there is one: no key is overwritten
        finally:
            os.unlink(draft)
    except FileExistsError:
        raise UsageError(
            f"{target} is there already; a key is not overwritten: remove it first, or name another file"
        ) from None
    except OSError as error:
        raise UsageError(f"the key cannot be written to {target}: {error.strerror or error}") from None
    return target


def _replace(path: str | os.PathLike[str], data: bytes) -> None:
    try:
        os.replace(_draft(Path(path), data), path)
    except OSError as error:
        raise UsageError(f"the key cannot be written to {path}: {error.strerror or error}") from None


def _draft(target: Path, data: bytes) -> Path:
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(data)
    return draft


def _new_key(role: str = CLUSTER, name: str = "esault cluster", cluster: str = "") -> bytes:
    """A private key and its certificate, signed by itself or by the cluster's key in this text."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise UsageError(
            "a key cannot be made without the package cryptography: pip install 'esault[hosts]'; nodes that are given "
            "a key need it not"
        ) from None
    private = Ed25519PrivateKey.generate()
    # no two have one name: OpenSSL looks for who has signed a certificate by its name
    own = name if cluster else f"{name} {secrets.token_hex(8)}"
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, own)])
    issuer, signer, is_cluster = subject, private, not cluster
    if cluster:
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        found: Any = serialization.load_pem_private_key(cluster.partition(_CERTIFICATE)[0].encode(), None)
        issuer, signer = x509.load_pem_x509_certificate(_certificates(cluster)).subject, found
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(_FROM, 1, 1, tzinfo=timezone.utc))
        .not_valid_after(datetime(_UNTIL, 12, 31, tzinfo=timezone.utc))
        .add_extension(x509.BasicConstraints(ca=is_cluster, path_length=0 if is_cluster else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
    )
    if not is_cluster:  # it calls, and is never called: no node is taken for one of the cluster's by it
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=True)
        key_id = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id), critical=False
        )
    certificate = builder.sign(signer, None)
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
