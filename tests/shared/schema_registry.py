"""A stand-in for Confluent's schema registry, whose server cannot be had here: the part of its REST API that clients of serializers use.

As its API reference says: ids are the same for the same schema, versions count within a subject, errors are
`{"error_code": ..., "message": ...}`, and a schema that does not fit the last one of its subject is refused with 409 (Avro only: a
field that is new and has no default).
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class SchemaRegistry:
    """Schemas in memory. `password`: "user:word" that it asks for; `status`: what it answers to all, such as 500."""

    def __init__(self, password: str | None = None) -> None:
        self.schemas: list[dict] = []
        self.subjects: dict[str, list[int]] = {}
        self.password, self.status = password, 0
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": self}))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def id_of(self, given: dict) -> int:
        schema = {name: given[name] for name in ("schema", "schemaType", "references") if given.get(name)}
        if schema not in self.schemas:
            self.schemas.append(schema)
        return self.schemas.index(schema) + 1

    def told(self, subject: str, version: int) -> dict:
        id = self.subjects[subject][version - 1]
        return {
            "subject": subject,
            "version": version,
            "id": id,
            "guid": str(uuid.UUID(int=id)),
            **self.schemas[id - 1],
        }

    def fits(self, subject: str, given: dict) -> bool:
        if not self.subjects.get(subject) or given.get("schemaType", "AVRO") != "AVRO":
            return True
        before, now = (json.loads(each["schema"]) for each in (self.told(subject, len(self.subjects[subject])), given))
        if not isinstance(before, dict) or not isinstance(now, dict):
            return before == now
        known = {field["name"] for field in before.get("fields", ())}
        return all(field["name"] in known or "default" in field for field in now.get("fields", ()))


class _Handler(BaseHTTPRequestHandler):
    registry: SchemaRegistry
    protocol_version = "HTTP/1.1"

    def log_message(self, *of) -> None:
        pass

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _error(self, code: int, message: str) -> None:
        self._answer(int(str(code)[:3]), {"error_code": code, "message": message})

    def _handle(self) -> None:
        registry, path = self.registry, unquote(urlsplit(self.path).path)
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        registry.asked.append(f"{self.command} {path}")
        if registry.status:
            return self._error(registry.status, "so it was told")
        if registry.password is not None:
            given = self.headers.get("Authorization", "").removeprefix("Basic ")
            if base64.b64decode(given).decode() != registry.password:
                return self._error(401, "Unauthorized")
        if path == "/schemas/types":
            return self._answer(200, ["JSON", "PROTOBUF", "AVRO"])
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            id = int(found[1])
            if not 1 <= id <= len(registry.schemas):
                return self._error(40403, f"Schema {id} not found")
            return self._answer(200, {"schemaType": "AVRO", **registry.schemas[id - 1]})
        if found := re.fullmatch(r"/subjects/([^/]+)/versions", path):
            if self.command == "GET":
                return self._answer(200, list(range(1, len(registry.subjects.get(found[1], ())) + 1)))
            if not registry.fits(found[1], body):
                return self._error(409, "Schema being registered is incompatible with an earlier schema")
            id = registry.id_of(body)
            versions = registry.subjects.setdefault(found[1], [])
            if id not in versions:
                versions.append(id)
            return self._answer(200, registry.told(found[1], versions.index(id) + 1))
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(latest|-1|\d+)", path):
            versions = registry.subjects.get(found[1], [])
            version = int(found[2]) if found[2].isdigit() else len(versions)
            if not versions:
                return self._error(40401, f"Subject '{found[1]}' not found.")
            return self._answer(200, registry.told(found[1], version))
        if found := re.fullmatch(r"/subjects/([^/]+)", path):
            versions, id = registry.subjects.get(found[1], []), registry.id_of(body)
            if id not in versions:
                return self._error(40403, "Schema not found")
            return self._answer(200, registry.told(found[1], versions.index(id) + 1))
        return self._error(404, "HTTP 404 Not Found")

    do_GET = do_POST = _handle  # noqa: N815


@contextlib.contextmanager
def serving(password: str | None = None) -> Iterator[SchemaRegistry]:
    """A registry until the end of the block."""
    registry = SchemaRegistry(password)
    try:
        yield registry
    finally:
        registry.close()
