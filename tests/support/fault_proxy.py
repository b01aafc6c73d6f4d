"""A proxy on loopback that breaks the n-th request to the server behind it, in a chosen way.

503      answers for the server, which never sees the request
reset    resets the connection before the server sees the request
lost     lets the server carry the request out, then resets the connection: the reply is lost
stall    says nothing until the client gives up
short    cuts the reply's body in half and closes
damaged  flips one bit of the body (a read's reply, a write's request), its size unchanged
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

EFFECTS = ("503", "reset", "lost", "stall", "short", "damaged")
Plan = Callable[[int, str, str], str | None]
"""From the request's number (from 1), method and target to an effect or None."""


@dataclass
class FaultProxy:
    """`endpoint` is where clients connect; `plan` may change at any time; `seen` counts requests since reset()."""

    endpoint: str
    plan: Plan
    seen: int = 0
    broken: int = 0

    def reset(self, plan: Plan) -> None:
        self.plan, self.seen, self.broken = plan, 0, 0


def nth(number: int, effect: str) -> Plan:
    """Return the plan that breaks one request."""
    return lambda seen, method, target: effect if seen == number else None


def nothing(seen: int, method: str, target: str) -> None:
    """Break nothing."""


@contextlib.contextmanager
def fault_proxy(upstream: str) -> Iterator[FaultProxy]:
    """Run a proxy in front of a server while the block lasts."""
    parts = urlsplit(upstream)
    address = (parts.hostname or "", parts.port or 80)
    lock, done = threading.Lock(), threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        request: socket.socket

        def handle(self) -> None:
            with contextlib.suppress(OSError):
                while not done.is_set():
                    if not self._serve():
                        return

        def _serve(self) -> bool:
            head = _until(self.request, b"\r\n\r\n")
            if head is None:
                return False
            lines, body = head[0], head[1]
            size = _length(lines) or 0
            body += _exactly(self.request, size - len(body))
            method, target = lines.split(b" ", 2)[:2]
            with lock:
                proxy.seen += 1
                effect = proxy.plan(proxy.seen, method.decode(), target.decode())
                proxy.broken += effect is not None
            return self._broken(effect, method, lines, body) if effect else self._forward(lines, body)

        def _broken(self, effect: str, method: bytes, lines: bytes, body: bytes) -> bool:
            if effect == "503":
                text = b"<Error><Code>ServiceUnavailable</Code><Message>injected</Message></Error>"
                text = b"" if method == b"HEAD" else text
                self.request.sendall(
                    b"HTTP/1.1 503 Busy\r\ncontent-length: %d\r\nretry-after: 0\r\n\r\n%s" % (len(text), text)
                )
                return True
            if effect == "stall":
                self.request.settimeout(None)
                with contextlib.suppress(OSError):
                    self.request.recv(1)
                return False
            if effect == "damaged" and method in (b"PUT", b"POST") and body:
                return self._forward(lines, _flipped(body))
            if effect in ("lost", "short", "damaged"):
                reply = self._exchange(lines, body)
                top, _, rest = reply.partition(b"\r\n\r\n")
                if effect == "damaged" and rest and method == b"GET":
                    self.request.sendall(top + b"\r\n\r\n" + _flipped(rest))
                    return False
                if effect == "short" and rest:
                    self.request.sendall(top + b"\r\n\r\n" + rest[: len(rest) // 2])
                    return False
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False

        def _forward(self, lines: bytes, body: bytes) -> bool:
            self.request.sendall(self._exchange(lines, body))
            return False  # replies of any framing end with the connection

        def _exchange(self, lines: bytes, body: bytes) -> bytes:
            with socket.create_connection(address, 30) as server:
                first, _, rest = lines.partition(b"\r\n")
                kept = [line for line in rest.split(b"\r\n") if not line.lower().startswith(b"connection:")]
                server.sendall(b"\r\n".join([first, b"connection: close", *kept]) + b"\r\n\r\n" + body)
                pieces = []
                while piece := server.recv(1 << 18):
                    pieces.append(piece)
            reply = b"".join(pieces)
            if b"connection: close" not in reply.partition(b"\r\n\r\n")[0].lower():
                reply = reply.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
            return reply

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing: connections are broken on purpose."""

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy = FaultProxy(f"http://127.0.0.1:{server.server_address[1]}", nothing)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield proxy
        finally:
            done.set()
            server.shutdown()


def _until(connection: socket.socket, mark: bytes) -> tuple[bytes, bytes] | None:
    received = b""
    while mark not in received:
        piece = connection.recv(1 << 16)
        if not piece:
            return None
        received += piece
    head, _, rest = received.partition(mark)
    return head, rest


def _exactly(connection: socket.socket, size: int) -> bytes:
    pieces = []
    while size > 0 and (piece := connection.recv(min(size, 1 << 18))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _length(head: bytes) -> int | None:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return None


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
