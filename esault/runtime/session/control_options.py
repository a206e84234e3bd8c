"""`--control` and `--audit` of a run: who may ask it for what from elsewhere, and where that is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from esault.runtime.messages import HostsSpec
from esault.runtime.session.control_socket import ControlSocket
from esault.runtime.session.request import Request

if TYPE_CHECKING:
    from esault.cluster.audit import AuditLog
    from esault.runtime.session.remote_control import RemoteControl

__all__ = ["ControlOptions"]


class ControlOptions:
    """The options, opened. Nothing is loaded for those that were not given."""

    def __init__(self, request: Request, hosts: HostsSpec | None) -> None:
        """Raises UsageError."""
        self.audit: AuditLog | None = None
        self._remote: RemoteControl | None = None
        if request.audit is not None:
            from esault.cluster.audit import AuditLog

            self.audit = AuditLog(request.audit)
        self.open_remote(request, hosts)

    def open_remote(self, request: Request, hosts: HostsSpec | None) -> None:
        """Listen where other machines ask, if that is asked for. Raises UsageError."""
        if request.control is not None:
            from esault.cluster.key import ClusterKey, loopback_key
            from esault.runtime.session.remote_control import RemoteControl

            key = request.key or (hosts.key if hosts is not None else loopback_key())
            self._remote = RemoteControl(request.control, ClusterKey(key), self.audit)

    def serve(self, control_socket: ControlSocket, notice: Callable[[str], None]) -> None:
        """Hear other machines."""
        if self._remote is not None:
            self._remote.serve(control_socket)
            notice(f"other machines may ask at {self._remote.address}, by a key with a role")

    def close_remote(self) -> None:
        """Hear no other machine any more; another one may listen there at once."""
        if self._remote is not None:
            self._remote.close()
            self._remote = None

    def close(self) -> None:
        """Hear no caller any more."""
        self.close_remote()
        if self.audit is not None:
            self.audit.close()
