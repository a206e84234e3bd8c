"""moto's server, whose conditional puts are atomic: by itself it looks and then writes, and two of three may both succeed.

python atomic_moto.py PORT
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Iterable
from typing import Any


def main(port: int) -> None:
    """Serve until killed."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, run_simple

    class Handler(WSGIRequestHandler):
        def handle_expect_100(self) -> bool:
            """Leave it to werkzeug, which says it, too. Amazon's client in Java takes a second "100 Continue" for the answer."""
            return True

    app, one = DomainDispatcherApplication(create_backend_app), threading.Lock()

    def serve(environment: dict[str, Any], answer: Any) -> Iterable[bytes]:
        if "HTTP_IF_NONE_MATCH" not in environment:
            return app(environment, answer)
        # All of it is read first: one who stands still in the midst of a put holds nobody up.
        length = environment.get("CONTENT_LENGTH")
        environment["wsgi.input"] = io.BytesIO(environment["wsgi.input"].read(*([int(length)] if length else [])))
        with one:
            return list(app(environment, answer))

    run_simple("127.0.0.1", port, serve, threaded=True, request_handler=Handler)


if __name__ == "__main__":
    main(int(sys.argv[1]))
