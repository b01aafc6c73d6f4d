"""Prepares batches in a thread while the trainer computes: NumPy and pyarrow work without the interpreter's lock."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_END = object()


class Ahead(Generic[T]):
    """An iterator whose next `depth` items a thread prepares. An error is raised where its item would have come."""

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self._queue: queue.Queue[object] = queue.Queue(depth)
        self._stopped = threading.Event()
        self._source = source
        self._thread = threading.Thread(target=self._run, name="dataset-ahead", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[T]:
        """Return itself: it can be iterated once."""
        return self

    def __next__(self) -> T:
        """Return the next item."""
        item = self._queue.get()
        if item is _END or isinstance(item, _Failure):
            self._queue.put(item)  # whoever asks again gets the same answer
            if isinstance(item, _Failure):
                raise item.error
            raise StopIteration
        return item  # type: ignore[return-value]

    def close(self) -> None:
        """Stop the thread and let go of what it holds."""
        self._stopped.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.01)
            except queue.Empty:
                continue
        self._queue.put(_END)

    def _run(self) -> None:
        last: object = _END
        try:
            for item in self._source:
                self._queue.put(item)
                if self._stopped.is_set():
                    break
        except BaseException as error:
            last = _Failure(error)
        finally:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
        if not self._stopped.is_set():
            self._queue.put(last)


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error
