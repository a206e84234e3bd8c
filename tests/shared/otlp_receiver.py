"""A server that takes OTLP over HTTP as a collector does, and decodes it."""

from __future__ import annotations

import gzip
import http.server
import threading

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """A server that takes OTLP over HTTP, as a collector does."""

    def __init__(self):
        self.requests: list[tuple[str, bytes]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                data = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    data = gzip.decompress(data)
                receiver.requests.append((self.path, data))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def metrics(self):
        """The newest of each, by name: its points; and the resource."""
        found, about = {}, {}
        for path, data in self.requests:
            if path == "/v1/metrics":
                for each in ExportMetricsServiceRequest.FromString(data).resource_metrics:
                    about = attributes(each.resource)
                    found.update({m.name: m for scope in each.scope_metrics for m in scope.metrics})
        return found, about

    def spans(self):
        return [
            span
            for path, data in self.requests
            if path == "/v1/traces"
            for each in ExportTraceServiceRequest.FromString(data).resource_spans
            for scope in each.scope_spans
            for span in scope.spans
        ]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def attributes(thing):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in thing.attributes}
