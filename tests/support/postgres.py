"""A PostgreSQL server of one's own, unprivileged and on loopback, from Debian's packages where they are there."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """Return the folder of PostgreSQL's server programs, the newest version's."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


@contextmanager
def server() -> Iterator[str]:
    """Run a server in a scratch folder while the block lasts, and yield its URL.

    PostgreSQL refuses to run as root, so there it runs as `nobody`.
    """
    binaries = programs()
    assert binaries is not None
    folder = Path(tempfile.mkdtemp(prefix="nightrelay-pg-"))
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)

    def run(*command: str) -> None:
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user is not None else {}
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=60, **as_user)  # type: ignore[call-overload]

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = str(folder / "data")
    control = str(binaries / "pg_ctl")
    run(str(binaries / "initdb"), "-D", data, "-U", "relay", "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} -c fsync=off"
    try:
        run(control, "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
        yield f"postgresql://relay@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run(
            [control, "-D", data, "-m", "immediate", "stop"], capture_output=True, check=False, timeout=60,
            **({"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user is not None else {}),  # type: ignore[call-overload]
        )  # fmt: skip
        shutil.rmtree(folder, ignore_errors=True)
