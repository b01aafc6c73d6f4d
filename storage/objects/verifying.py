"""A store whose chunks are what their keys say: BLAKE3 tells identity, the store's own checksum guards the wire.

Only whole chunks can be told by their key; other objects pass through, their digests are known to their manifests.
"""

from __future__ import annotations

from collections.abc import Sequence

from blake3 import blake3

from regions.errors import IntegrityError
from storage.objects import files
from storage.objects.chunks import digest_in
from storage.objects.interface import Body, Stat, size_of
from storage.objects.wrapping import Wrapper


class Verifying(Wrapper):
    """Refuses to write or to return a chunk whose bytes are not those its key names."""

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Read; a whole chunk is hashed."""
        data = self._inner.get(key, start=start, size=size, version=version)
        if start == 0 and size is None:
            self._check(key, data, "holds")
        return data

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Hash, write, and read back where the server would not have noticed damage; a damaged chunk is removed."""
        self._check(key, body, "was given")
        stat = self._inner.put(key, body, create=create, if_match=if_match, storage_class=storage_class)
        self._settle(key, stat)
        return stat

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Hash, write and read back like put()."""
        for key, body in objects:
            self._check(key, body, "was given")
        stats = self._inner.put_many(objects, storage_class=storage_class)
        for stat in stats:
            self._settle(stat.key, stat)
        return stats

    def _settle(self, key: str, stat: Stat) -> None:
        if digest_in(key) is None or self.path(key) is not None or self.capabilities.wire_checksum:
            return
        try:
            self._check(key, self._inner.get(key, version=stat.version), "holds")
        except IntegrityError:
            self._inner.delete(key)
            raise

    def _check(self, key: str, body: Body, verb: str) -> None:
        expected = digest_in(key)
        if expected is None:
            return
        with files.viewed(body) as data:
            got = blake3(data).hexdigest()
        if got != expected:
            raise IntegrityError(
                f"{self.url} {verb} {size_of(body)} bytes for {key} whose digest is {got}; use another copy of it",
                store=self.url,
                key=key,
                got=got,
            )
