"""Ceph's RADOS Gateway as three ordinary processes in a scratch folder: a monitor, one OSD on a file, the gateway.

From Debian's packages (radosgw, ceph-mon, ceph-osd); where they are absent `ceph_server` skips the test and says so.
No root, no systemd, everything on loopback. `kill()` and `start()` let a test cut the power.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.objects import Store, open_store
from storage.objects.credentials import Credential

PROGRAMS = ("radosgw", "radosgw-admin", "ceph-mon", "ceph-osd", "ceph", "monmaptool")
_SETTINGS = """
[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{mon}
auth cluster required = none
auth service required = none
auth client required = none
ms bind msgr2 = false
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
mon data = {folder}/mon
mon allow pool size one = true
mon warn on pool no redundancy = false
osd data = {folder}/osd
osd objectstore = bluestore
bluestore block size = 3221225472
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd crush chooseleaf type = 0
osd class update on start = false
osd crush update on start = false
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{rgw} tcp_nodelay=1
rgw gc obj min wait = 5
rgw gc processor period = 5
rgw lc debug interval = 10
"""


class CephServer:
    """The three processes; `endpoint` is the gateway's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        mon, rgw = _free_port(), _free_port()
        self.endpoint = f"http://127.0.0.1:{rgw}"
        self._processes: list[subprocess.Popen[bytes]] = []
        fsid = str(uuid.uuid4())
        for name in ("mon", "osd", "rgw"):
            (folder / name).mkdir()
        self._conf = folder / "ceph.conf"
        self._conf.write_text(_SETTINGS.format(fsid=fsid, folder=folder, mon=mon, rgw=rgw))
        monmap = str(folder / "monmap")
        self._run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v1:127.0.0.1:{mon}]", monmap)
        self._run("ceph-mon", "-c", str(self._conf), "--mkfs", "-i", "a", "--monmap", monmap)
        self._spawn("ceph-mon", "-i", "a")
        osd = str(uuid.uuid4())
        self._ceph("osd", "new", osd)
        self._run("ceph-osd", "-c", str(self._conf), "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._ceph("osd", "crush", "add", "osd.0", "1.0", "root=default")
        self._spawn("ceph-osd", "-i", "0")
        self._start_gateway()
        self._admin("user", "create", "--uid=test", "--display-name=test", "--access-key=access", "--secret-key=secret")
        for kind, placement in (("zonegroup", []), ("zone", ["--data-pool=default.rgw.cold.data"])):
            for name in ("STANDARD_IA", "GLACIER"):
                self._admin(
                    kind, "placement", "add", f"--rgw-{kind}=default", "--placement-id=default-placement",
                    f"--storage-class={name}", *placement,
                )  # fmt: skip
        self.kill()
        self.start()

    def start(self) -> None:
        """Start what kill() ended."""
        self._spawn("ceph-mon", "-i", "a")
        self._spawn("ceph-osd", "-i", "0")
        self._start_gateway()

    def kill(self) -> None:
        """SIGKILL all three."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        self._processes.clear()

    def store(self) -> Store:
        """Open a store in a fresh bucket."""
        bucket = f"bucket-{uuid.uuid4().hex[:12]}"
        from botocore.session import Session

        client = Session().create_client(
            "s3", "default", endpoint_url=self.endpoint, aws_access_key_id="access", aws_secret_access_key="secret"
        )
        client.create_bucket(Bucket=bucket)
        return self.open(f"s3://{bucket}/site")

    def open(self, url: str) -> Store:
        """Open a store at a URL of this server."""
        return open_store(
            url, endpoint=self.endpoint, region="default", credentials=lambda: Credential("access", "secret")
        )

    def _start_gateway(self) -> None:
        self._spawn("radosgw", "-n", "client.rgw")
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(self.endpoint, timeout=2):
                return
            time.sleep(0.2)
        raise AssertionError(f"the gateway did not start, see {self.folder}")

    def _spawn(self, program: str, *arguments: str) -> None:
        command = [program, "-c", str(self._conf), *arguments, "-f"]
        self._processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def _ceph(self, *arguments: str) -> None:
        for _ in range(20):  # a monitor that has just begun refuses its first commands
            with contextlib.suppress(AssertionError):
                self._run("ceph", "-c", str(self._conf), "--connect-timeout", "60", *arguments)
                return
            time.sleep(0.5)
        raise AssertionError(f"ceph {' '.join(arguments)} failed, see {self.folder}")

    def _admin(self, *arguments: str) -> None:
        self._run("radosgw-admin", "-c", str(self._conf), "-n", "client.rgw", *arguments)

    def _run(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, timeout=180, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.decode()[-2000:]}"


def absent() -> list[str]:
    """Return the programs that this machine lacks."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


@contextlib.contextmanager
def ceph_server() -> Iterator[CephServer]:
    """Run a server while the block lasts; skip where the packages are absent."""
    if missing := absent():
        pytest.skip(f"no Ceph here ({', '.join(missing)} absent): install radosgw, ceph-mon, ceph-osd, ceph-common")
    folder = Path(tempfile.mkdtemp(prefix="nightrelay-ceph-"))
    server = None
    try:
        server = CephServer(folder)
        yield server
    finally:
        if server is not None:
            server.kill()
        if "NIGHTRELAY_KEEP" not in os.environ:
            shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
