"""A store that tries again: exponential pauses with jitter, the server's own wish honoured, up to a deadline.

Only TransientError is tried again: busy servers, broken connections, bytes damaged on the way. A refusal (no access,
not found, a conflict, a full disk) is the answer. A conditional write whose reply was lost may have been carried out;
when its repetition is told that something stands there, the bytes are read back and compared, never guessed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from regions.clock import Clock, SystemClock
from regions.errors import ConflictError, NotFoundError, TransientError
from storage.objects import files
from storage.objects.interface import Body, Part, Stat, Store, Upload, size_of
from storage.objects.wrapping import Wrapper

_Result = TypeVar("_Result")
_COMPARED = 8 << 20


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient to be. Times in real seconds."""

    deadline: float = 120.0
    """After this much time since the first attempt no new one begins."""
    attempts: int = 10
    first_pause: float = 0.1
    """The upper bound of the first pause; each next one doubles. The pause itself is drawn from 0 to the bound."""
    longest_pause: float = 10.0


class Retrying(Wrapper):
    """Tries each verb again while that makes sense. `chance` draws the jitter."""

    def __init__(
        self,
        inner: Store,
        policy: RetryPolicy | None = None,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__(inner)
        self._policy = policy or RetryPolicy()
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()

    def head(self, key: str) -> Stat:
        """Look, again if need be."""
        return self._tried(lambda: self._inner.head(key))

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Read, again if need be."""
        return self._tried(lambda: self._inner.get(key, start=start, size=size, version=version))

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Read into the buffer, again from its beginning if need be."""
        self._tried(lambda: self._inner.fetch(key, into, start=start, version=version))

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Write, again if need be; a condition broken by our own lost success is a success."""
        lost = False

        def attempt() -> Stat:
            nonlocal lost
            try:
                return self._inner.put(key, body, create=create, if_match=if_match, storage_class=storage_class)
            except TransientError as error:
                lost = lost or _may_have_happened(error)
                raise
            except ConflictError:
                if lost and (ours := self._ours(key, body)) is not None:
                    return ours
                raise

        return self._tried(attempt)

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Write many; only the one that failed is written again."""
        if self._inner.path("any") is not None:  # a folder makes them durable together
            return self._inner.put_many(objects, storage_class=storage_class)
        return tuple(self.put(key, body, storage_class=storage_class) for key, body in objects)

    def open_upload(self, key: str, *, size: int, part_size: int, storage_class: str | None = None) -> str:
        """Open an upload, again if need be: one whose id was lost is found by sweeping the open uploads."""
        return self._tried(
            lambda: self._inner.open_upload(key, size=size, part_size=part_size, storage_class=storage_class)
        )

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write a part, again if need be."""
        return self._tried(lambda: self._inner.put_part(key, upload, number, body))

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """List the parts, again if need be."""
        return self._tried(lambda: self._inner.parts(key, upload))

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Complete, again if need be.

        When a lost success makes the repetition fail (NotFoundError, ConflictError), that is raised: only the caller
        knows the digest by which the object there can be told.
        """
        return self._tried(lambda: self._inner.complete(key, upload, parts, create=create))

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload, again if need be."""
        self._tried(lambda: self._inner.abort(key, upload))

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """List the uploads; a listing that breaks off begins anew and leaves out what it gave."""
        return self._listed(lambda: self._inner.uploads(folder), lambda upload: upload.upload)

    def copy(
        self, source: str, key: str, *, source_version: str | None = None, storage_class: str | None = None
    ) -> Stat:
        """Copy, again if need be."""
        return self._tried(
            lambda: self._inner.copy(source, key, source_version=source_version, storage_class=storage_class)
        )

    def set_class(self, key: str, storage_class: str) -> Stat:
        """Change the class, again if need be."""
        return self._tried(lambda: self._inner.set_class(key, storage_class))

    def restore(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Restore, again if need be."""
        return self._tried(lambda: self._inner.restore(key, days=days, speed=speed))

    def list(self, folder: str = "") -> Iterator[Stat]:
        """List; a listing that breaks off begins anew and leaves out what it gave."""
        return self._listed(lambda: self._inner.list(folder), lambda stat: stat.key)

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Delete, again if need be; finding it gone after a lost reply is a success."""
        lost = False

        def attempt() -> None:
            nonlocal lost
            try:
                self._inner.delete(key, if_match=if_match)
            except TransientError as error:
                lost = lost or _may_have_happened(error)
                raise
            except ConflictError:
                if not lost or self._exists(key):
                    raise

        self._tried(attempt)

    def _tried(self, attempt: Callable[[], _Result]) -> _Result:
        try:
            return attempt()
        except TransientError as error:
            return self._persist(attempt, error)

    def _persist(self, attempt: Callable[[], _Result], first: TransientError) -> _Result:
        """Go on after a first failure. Kept apart so that what succeeds at once costs nothing."""
        from tenacity import RetryCallState, retry_if_exception_type, stop_after_attempt
        from tenacity import Retrying as Attempts

        begun, failed = self._clock.monotonic(), [first]

        def again() -> _Result:
            if failed:
                raise failed.pop()
            return attempt()

        def pause(state: RetryCallState) -> float:
            return self._pause(state.attempt_number, state.outcome.exception() if state.outcome else None)

        def too_late(state: RetryCallState) -> bool:
            return self._clock.monotonic() - begun + state.upcoming_sleep >= self._policy.deadline

        attempts = Attempts(
            stop=lambda state: too_late(state) or stop_after_attempt(self._policy.attempts)(state),
            wait=pause,
            retry=retry_if_exception_type(TransientError),
            sleep=self._clock.sleep,
            reraise=True,
        )
        return attempts(again)

    def _pause(self, attempt: int, error: BaseException | None) -> float:
        wished = getattr(error, "retry_after", None)
        bound = min(self._policy.longest_pause, self._policy.first_pause * 2.0 ** (attempt - 1))
        return float(wished or 0.0) + self._chance.uniform(0.0, bound)

    def _listed(
        self, listing: Callable[[], Iterator[_Result]], identity: Callable[[_Result], str]
    ) -> Iterator[_Result]:
        given: set[str] = set()
        attempt = 0
        while True:
            try:
                for found in listing():
                    if identity(found) not in given:
                        given.add(identity(found))
                        yield found
                return
            except TransientError as error:
                attempt += 1
                if attempt >= self._policy.attempts:
                    raise
                self._clock.sleep(self._pause(attempt, error))

    def _ours(self, key: str, body: Body) -> Stat | None:
        """Return what stands under the key if its bytes are the body's."""
        stat = self.head(key)
        if stat.size != size_of(body):
            return None
        buffer = bytearray(min(_COMPARED, stat.size))
        with files.viewed(body) as wanted:
            for start in range(0, stat.size, _COMPARED):
                piece = memoryview(buffer)[: min(_COMPARED, stat.size - start)]
                self.fetch(key, piece, start=start, version=stat.version)
                if piece != wanted[start : start + len(piece)]:
                    return None
        return stat

    def _exists(self, key: str) -> bool:
        try:
            self.head(key)
        except NotFoundError:
            return False
        return True


def _may_have_happened(error: TransientError) -> bool:
    return bool(error.context.get("sent", False))
