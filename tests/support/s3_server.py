"""moto as a process of its own on loopback: a real HTTP server that keeps S3's conditions, classes and restores."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator

from storage.objects import Store, open_store
from storage.objects.credentials import Credential


def credential() -> Credential:
    return Credential("test", "test-secret")


@contextlib.contextmanager
def moto_server() -> Iterator[str]:
    """Run a server while the block lasts; yield its endpoint."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{endpoint}/moto-api/", timeout=1):
                break
            assert server.poll() is None, "moto ended"
            time.sleep(0.1)
        yield endpoint
    finally:
        server.kill()
        server.wait()


def make_bucket(endpoint: str) -> str:
    """Make a bucket of its own; return its name."""
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{name}", method="PUT"), timeout=10):
        return name


def s3_store(endpoint: str, prefix: str = "site") -> Store:
    """Open a store in a fresh bucket."""
    url = f"s3://{make_bucket(endpoint)}/{prefix}"
    return open_store(url, endpoint=endpoint, region="us-east-1", credentials=credential)
