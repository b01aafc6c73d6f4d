"""Ports of this machine's loopback, and whether somebody answers there."""

from __future__ import annotations

import http.client
import json
import socket

from regions.errors import OutsideError

HOST = "127.0.0.1"
PREFERRED = 4200
"""Prefect's own default, so that plain `prefect` commands find the server without being told."""


def claim_port(wanted: int | None) -> int:
    """Return a port that is free now: the wanted one (else one clear OutsideError), or 4200, or any."""
    if wanted is not None:
        if not _free(wanted):
            raise OutsideError(
                f"port {wanted} of {HOST} is in use by another program: stop it, or choose another with --port",
                kind="port-in-use",
            )
        return wanted
    return PREFERRED if _free(PREFERRED) else free_port()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def listening(port: int) -> bool:
    """Say whether somebody accepts connections."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((HOST, port)) == 0


def ask(port: int, path: str, body: object | None = None, *, timeout: float = 5.0) -> object | None:
    """Return the JSON answer of an HTTP server on loopback, or None where there is no good answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=timeout)
    try:
        text = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        return json.loads(content) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
