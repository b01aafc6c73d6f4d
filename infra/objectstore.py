"""`python -m infra.objectstore`: one S3 server on loopback with one bucket, in memory, for the demo and the tests.

moto answers; this adds what a real store has: a bucket that exists from the start, and keys of which one may write and
the other may only read. A request without one of them is refused, so a leg cannot open a store that is not its own.
Keys come by the environment, never by the command line, which every user of the machine can read.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import MotoRequestHandler
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

from infra.stack.environment import OWNER_KEY, READER_KEY

_KEY = re.compile(r"Credential=([^/,\s]+)/")
_REFUSED = b"<Error><Code>AccessDenied</Code><Message>this key does not open this store that way</Message></Error>"

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class _Connection(MotoRequestHandler):  # type: ignore[misc]
    """Stays open, since a leg makes many small requests, and does not log each of them."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_: object) -> None:
        pass


def guarded(app: WsgiApp, owner: str, reader: str) -> WsgiApp:
    """Return the application behind its two keys. Pre-signed requests carry their key in the query."""

    def guard(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        given = f"{environ.get('HTTP_AUTHORIZATION', '')} {environ.get('QUERY_STRING', '').replace('%2F', '/')}"
        key = match[1] if (match := _KEY.search(given)) else None
        reads = environ["REQUEST_METHOD"] in ("GET", "HEAD")
        if key is not None and (key == owner or (reads and key == reader)):
            return app(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(_REFUSED)))])
        return [_REFUSED]

    return guard


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(prog="python -m infra.objectstore", description="Serve one bucket over S3.")
    parser.add_argument("bucket")
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(given.bucket, "us-east-1")
    app = DomainDispatcherApplication(create_backend_app)
    store = guarded(app, os.environ[OWNER_KEY], os.environ[READER_KEY])
    run_simple("127.0.0.1", given.port, store, threaded=True, request_handler=_Connection)


if __name__ == "__main__":
    main()
