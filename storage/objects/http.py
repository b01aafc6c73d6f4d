"""HTTP/1.1 as object stores need it: pooled connections, bodies that go by system call, replies read in place.

Bodies of files go out by sendfile, bodies of replies come in by recv_into straight into the caller's buffer. It knows
no store and retries nothing: a connection that breaks is a TransientError, `sent` telling whether the request may
have been carried out.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from regions.errors import InputError, StoreUnavailable
from storage.objects.interface import Body, FileRange, size_of

_LONGEST_HEAD = 1 << 18
_PIECE = 1 << 20
_ABANDONED = 1 << 16
"""A reply body up to this size is read to keep the connection; beyond, closing is cheaper."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: header names in lower case; `body` is empty where the caller's buffer took it (`filled`)."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    filled: bool = False


class HttpPool:
    """Connections to one host, each used by one thread at a time. Safe for threads; not to be carried over a fork."""

    def __init__(self, endpoint: str, *, timeout: float = 60.0, connect_timeout: float = 10.0) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.username:
            raise InputError(f"{endpoint!r} is no endpoint: expected http(s)://host[:port]", kind="endpoint")
        self.host = parts.netloc
        self._address = (parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._timeout, self._connect_timeout = timeout, connect_timeout
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()

    def request(
        self, method: str, target: str, headers: Mapping[str, str], body: Body = b"", into: memoryview | None = None
    ) -> Reply:
        """Send one request and return its reply, whatever its status.

        Where `into` is given and the reply is a success with exactly that many bytes, they go there.
        """
        connection = self._take()
        try:
            reply, reusable = connection.exchange(method, target, self.host, headers, body, into)
        except (OSError, ValueError) as error:
            connection.close()
            raise self._broken(error, method, sent=connection.sent) from error
        except BaseException:
            connection.close()
            raise
        if reusable:
            with self._lock:
                self._idle.append(connection)
        else:
            connection.close()
        return reply

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> _Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            if connection.alive():
                return connection
            connection.close()
        try:
            return _Connection(self._dial(), self._timeout)
        except OSError as error:
            raise self._broken(error, "connect", sent=False) from error

    def _dial(self) -> socket.socket:
        dialled = socket.create_connection(self._address, self._connect_timeout)
        dialled.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            dialled = self._tls.wrap_socket(dialled, server_hostname=self._address[0])
        # A blocking socket with the kernel's own timeouts: one system call moves a whole body.
        dialled.settimeout(None)
        seconds, rest = divmod(self._timeout, 1)
        limit = struct.pack("ll", int(seconds), int(rest * 1e6))
        dialled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        dialled.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        return dialled

    def _broken(self, error: OSError | ValueError, method: str, *, sent: bool) -> StoreUnavailable:
        silent = isinstance(error, BlockingIOError | TimeoutError | ssl.SSLWantReadError)
        said = f"was silent for {self._timeout:g} s" if silent else str(error) or type(error).__name__
        kind = "no-connection" if not sent and method == "connect" else "connection-broken"
        return StoreUnavailable(f"{self.host}: {method} failed: {said}", kind=kind, sent=sent)


class _Connection:
    """One connection and the bytes read beyond the last reply."""

    def __init__(self, dialled: socket.socket, patience: float) -> None:
        self._socket, self._patience = dialled, patience
        self._plain = not isinstance(dialled, ssl.SSLSocket)
        self._rest = b""
        self.sent = False
        self._watch = select.poll()
        self._watch.register(dialled, select.POLLIN | select.POLLHUP | select.POLLERR)

    def alive(self) -> bool:
        """Tell whether an idle connection can be used: a server that closed it, or spoke unasked, makes it readable."""
        return not self._rest and not self._watch.poll(0)

    def close(self) -> None:
        self._socket.close()

    def exchange(
        self, method: str, target: str, host: str, headers: Mapping[str, str], body: Body, into: memoryview | None
    ) -> tuple[Reply, bool]:
        """Return the reply and whether the connection can serve another request."""
        self.sent = False
        size = size_of(body)
        lines = [f"{method} {target} HTTP/1.1", f"host: {host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if size or method in ("PUT", "POST"):
            lines.append(f"content-length: {size}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        try:
            whole = self._send(head, body, size)
        except (BrokenPipeError, ConnectionResetError):
            if not self._watch.poll(0):  # the server may have answered before it hung up
                raise
            whole = False
        reply, reusable = self._reply(method, into)
        return reply, reusable and whole

    def _send(self, head: bytes, body: Body, size: int) -> bool:
        """Send a request; return false where the server answered before it had the whole body."""
        self.sent = True
        if not isinstance(body, FileRange) and size <= 1 << 14:
            self._socket.sendall(head + bytes(body))
            return True
        self._socket.sendall(head)
        if self._plain:
            return self._stream(body, size)
        start = 0
        while start < size:
            piece = _piece(body, start, min(_PIECE, size - start))
            self._socket.sendall(piece)
            start += len(piece)
        return True

    def _stream(self, body: Body, size: int) -> bool:
        """Send a body without copying it here, watching for a server that refuses it and stops reading."""
        descriptor, start = self._socket.fileno(), 0
        view = None if isinstance(body, FileRange) else memoryview(body).cast("B")
        both = select.poll()
        both.register(descriptor, select.POLLIN | select.POLLOUT)
        os.set_blocking(descriptor, False)
        try:
            while start < size:
                ready = both.poll(self._patience * 1000)
                if not ready:
                    raise TimeoutError
                if ready[0][1] & select.POLLIN:
                    return False
                with contextlib.suppress(BlockingIOError):
                    if view is not None:
                        start += self._socket.send(view[start:])
                    elif isinstance(body, FileRange):
                        sent = os.sendfile(descriptor, body.descriptor, body.offset + start, size - start)
                        if not sent:
                            raise OSError(errno.EIO, f"the file to send ended {size - start} bytes early")
                        start += sent
        finally:
            os.set_blocking(descriptor, True)
        return True

    def _reply(self, method: str, into: memoryview | None) -> tuple[Reply, bool]:
        status = 100
        while 100 <= status < 200:
            version, status, headers = self._head()
        keep = headers.get("connection", "keep-alive" if version == "HTTP/1.1" else "close").lower() != "close"
        if method == "HEAD" or status in (204, 304):
            return Reply(status, headers, b""), keep
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return Reply(status, headers, self._chunks()), keep
        if "content-length" not in headers:
            return Reply(status, headers, self._until_closed()), False
        length = int(headers["content-length"])
        if into is not None and status in (200, 206):
            if length == into.nbytes:
                self._fill(into.cast("B"))
                return Reply(status, headers, b"", filled=True), keep
            if length > _ABANDONED:
                return Reply(status, headers, b""), False
        buffer = bytearray(length)
        self._fill(memoryview(buffer))
        return Reply(status, headers, bytes(buffer)), keep

    def _head(self) -> tuple[str, int, dict[str, str]]:
        received = self._rest
        while (end := received.find(b"\r\n\r\n")) < 0:
            if len(received) > _LONGEST_HEAD:
                raise ValueError("the reply's head has no end")
            received += self._some()
        self._rest = received[end + 4 :]
        lines = received[:end].decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        status = int(rest[:3]) if rest[:3].isdigit() else 0
        if not version.startswith("HTTP/1.") or not 100 <= status < 600:
            raise ValueError(f"no HTTP reply: {lines[0][:80]!r}")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return version, status, headers

    def _some(self) -> bytes:
        received = self._socket.recv(1 << 16)
        if not received:
            raise ConnectionResetError("the server closed the connection in the middle of a reply")
        return received

    def _fill(self, view: memoryview) -> None:
        start = min(len(self._rest), len(view))
        view[:start] = self._rest[:start]
        self._rest = self._rest[start:]
        flags = socket.MSG_WAITALL if self._plain else 0
        while start < len(view):
            got = self._socket.recv_into(view[start:], 0, flags)
            if not got:
                raise ConnectionResetError(f"the server closed the connection {len(view) - start} bytes early")
            start += got

    def _take_rest(self, size: int) -> bytes:
        buffer = bytearray(size)
        self._fill(memoryview(buffer))
        return bytes(buffer)

    def _line(self) -> bytes:
        while (end := self._rest.find(b"\r\n")) < 0:
            self._rest += self._some()
        line, self._rest = self._rest[:end], self._rest[end + 2 :]
        return line

    def _chunks(self) -> bytes:
        pieces = []
        while size := int(self._line().split(b";")[0], 16):
            pieces.append(self._take_rest(size))
            self._line()
        while self._line():
            pass  # trailers
        return b"".join(pieces)

    def _until_closed(self) -> bytes:
        pieces, self._rest = [self._rest], b""
        while received := self._socket.recv(1 << 16):
            pieces.append(received)
        return b"".join(pieces)


def _piece(body: Body, start: int, size: int) -> bytes | memoryview:
    if not isinstance(body, FileRange):
        return memoryview(body).cast("B")[start : start + size]
    piece = os.pread(body.descriptor, size, body.offset + start)
    if not piece:
        raise OSError(errno.EIO, "the file to send ended early")
    return piece
