"""The HTTP layer against servers that answer oddly: early, in chunks, without a length, not at all."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regions.errors import InputError, StoreUnavailable
from storage.objects.http import HttpPool
from storage.objects.interface import FileRange


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Run one answer per connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def replying(reply: bytes) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(reply)

    return answer


@pytest.mark.parametrize("kind", ["file", "memory"])
def test_a_refusal_before_the_body_is_heard(tmp_path: Path, kind: str) -> None:
    done = threading.Event()

    def refuse(connection: socket.socket) -> None:
        connection.recv(1 << 10)
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno")
        done.wait(10)  # reads nothing more and does not hang up

    (tmp_path / "body").write_bytes(os.urandom(32 << 20))
    with serving(refuse) as endpoint, (tmp_path / "body").open("rb") as file:
        body = FileRange(file.fileno(), 0, 32 << 20) if kind == "file" else os.urandom(32 << 20)
        reply = HttpPool(endpoint, timeout=8.0).request("PUT", "/k", {}, body)
        done.set()
    assert (reply.status, reply.body) == (403, b"no")


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nT: 1\r\n\r\n",
            b"hello",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_replies_of_any_framing(reply: bytes, body: bytes) -> None:
    with serving(replying(reply)) as endpoint:
        assert HttpPool(endpoint).request("GET", "/", {}).body == body


def test_bodies_come_straight_into_the_callers_buffer() -> None:
    with serving(replying(b"HTTP/1.1 206 P\r\ncontent-length: 5\r\n\r\nhello")) as endpoint:
        buffer = memoryview(bytearray(5))
        assert HttpPool(endpoint).request("GET", "/", {}, into=buffer).filled
        assert buffer == b"hello"


@pytest.mark.parametrize(
    "reply", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhel", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nconte"]
)
def test_what_breaks_off_is_transient_and_may_have_happened(reply: bytes) -> None:
    with serving(replying(reply)) as endpoint, pytest.raises(StoreUnavailable) as caught:
        HttpPool(endpoint).request("PUT", "/", {}, b"x")
    assert caught.value.context["sent"] is True


def test_a_silent_server_and_none_at_all() -> None:
    silent = lambda connection: threading.Event().wait(3)  # noqa: E731
    with serving(silent) as endpoint, pytest.raises(StoreUnavailable, match="silent"):  # type: ignore[arg-type]
        HttpPool(endpoint, timeout=0.2).request("GET", "/", {})
    with pytest.raises(StoreUnavailable) as caught:
        HttpPool(endpoint).request("GET", "/", {})
    assert caught.value.context["sent"] is False


@pytest.mark.parametrize("endpoint", ["ftp://x", "http://", "http://host/path", "host:80", "http://user@host"])
def test_endpoints_that_are_none(endpoint: str) -> None:
    with pytest.raises(InputError):
        HttpPool(endpoint)
