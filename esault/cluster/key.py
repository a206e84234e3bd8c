"""The key of a cluster: its holders belong to the cluster, and no other gets in.

A file with a private key (Ed25519) and a certificate that it has signed itself, as PEM. Both ends of each connection between
hosts show this certificate and accept no other: TLS 1.3 does the rest. Making a key needs the package `cryptography`, using
one needs the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from datetime import datetime, timezone
from pathlib import Path

from esault.errors import UsageError

__all__ = ["ClusterKey", "loopback_key", "make_key"]

#: a certificate holds from the first to the second year: clocks need not agree, and a key is changed by hand
_FROM, _UNTIL = 2000, 9999


class ClusterKey:
    """A key file that was read and checked. `client` and `server` are the contexts of the two ends of a connection."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Raises UsageError, naming file and remedy, when it cannot be used."""
        self.path = os.path.abspath(path)
        try:
            status = os.stat(self.path)
            text = Path(self.path).read_text(encoding="ascii")
        except FileNotFoundError:
            raise UsageError(
                f"there is no key {path}; make one with `esault keys {path}` and copy it to all hosts"
            ) from None
        except (OSError, UnicodeError) as error:
            raise UsageError(f"the key {path} cannot be read: {error}") from None
        if status.st_mode & 0o077:
            raise UsageError(f"the key {path} can be read by other users of this machine: chmod 600 {path}")
        self.client = self._context(ssl.PROTOCOL_TLS_CLIENT, text)
        self.server = self._context(ssl.PROTOCOL_TLS_SERVER, text)

    def _context(self, protocol: int, text: str) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # hosts are told by the key, not by names
        context.verify_mode = ssl.CERT_REQUIRED
        if protocol == ssl.PROTOCOL_TLS_SERVER:
            context.num_tickets = 0  # connections are not resumed, and a link reads nothing
        try:
            context.load_cert_chain(self.path)
            context.load_verify_locations(cadata=text[text.index("-----BEGIN CERTIFICATE") :])
        except (ssl.SSLError, ValueError) as error:
            raise UsageError(f"{self.path} is no key made by `esault keys`: {error}") from None
        return context


def make_key(path: str | os.PathLike[str]) -> Path:
    """Write a new key, for this user's eyes only. Raises UsageError when there is a file, or none can be made."""
    target = Path(path)
    data = _new_key()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
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


def loopback_key() -> Path:
    """This user's own key, for nodes of this machine alone that were given none; made when it is first asked for."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "esault"
    path = state / "loopback.key"
    if not path.exists():
        with contextlib.suppress(FileExistsError):
            state.mkdir(parents=True, mode=0o700)
        try:
            make_key(path)
        except UsageError:
            if not path.exists():  # else another command was quicker
                raise
    return path


def _new_key() -> bytes:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise UsageError(
            "a key cannot be made without the package cryptography: pip install 'esault[hosts]'; hosts that are given "
            "a key need it not"
        ) from None
    private = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "esault cluster")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(_FROM, 1, 1, tzinfo=timezone.utc))
        .not_valid_after(datetime(_UNTIL, 12, 31, tzinfo=timezone.utc))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .sign(private, None)
    )
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
