"""What does the target have already? Asked with few requests, and believed only as far as it can be.

An object under a key that carries its digest was verified when it was written, where the store refuses damaged bodies
or is this machine's own. Anything else that has the right size is read back and hashed, in the target's own region.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from blake3 import blake3

from regions.errors import IntegrityError, NotFoundError, NotReadyError
from storage.handoff.model import Item, Survey, distinct
from storage.objects import files
from storage.objects.interface import Store

_LISTED_FROM = 32
_PIECE = 8 << 20


def survey(items: Sequence[Item], target: Store, *, streams: int = 8) -> Survey:
    """Return which items lie at the target with the right digest and which do not."""
    wanted = distinct(items)
    sizes = _sizes_at(target, wanted, streams)
    right_size = [item for item in wanted if sizes.get(item.key) == item.size]
    with ThreadPoolExecutor(streams) as pool:
        verdicts = pool.map(lambda item: believed(target, item) or holds(target, item), right_size)
        present = {item for item, verdict in zip(right_size, verdicts, strict=True) if verdict}
    return Survey(
        tuple(item for item in wanted if item in present), tuple(item for item in wanted if item not in present)
    )


def believed(target: Store, item: Item) -> bool:
    """Tell whether an object of the right size needs no second look."""
    return item.names_itself and (target.path(item.key) is not None or bool(target.capabilities.wire_checksum))


def holds(target: Store, item: Item) -> bool:
    """Tell whether the target has the item's very bytes under its key, by reading them."""
    try:
        return digest_at(target, item) == item.digest
    except (NotFoundError, IntegrityError, NotReadyError):
        return False


def digest_at(store: Store, item: Item) -> str:
    """Return the BLAKE3 digest of what lies in a store under the item's key, in one version, of the item's size."""
    path = store.path(item.key)
    if path is not None:
        with files.file_errors("read", path), path.open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != item.size:
                raise IntegrityError(f"{path} has not {item.size} bytes")
            return files.hash_file(file.fileno())
    hasher = blake3()
    version = store.head(item.key).version
    buffer = memoryview(bytearray(min(_PIECE, item.size)))
    for start in range(0, item.size, _PIECE):
        piece = buffer[: min(_PIECE, item.size - start)]
        store.fetch(item.key, piece, start=start, version=version)
        hasher.update(piece)
    return hasher.hexdigest()


def _sizes_at(target: Store, items: Sequence[Item], streams: int) -> dict[str, int]:
    """Return the sizes of those items that are there: by listing where that is cheaper than asking one by one."""
    sizes: dict[str, int] = {}
    unknown: Iterable[Item] = items
    folder = _common_folder(items)
    if len(items) >= _LISTED_FROM and target.path(items[0].key) is None:
        keys, patience, last = {item.key for item in items}, 4 * len(items) + 1000, ""
        for seen, stat in enumerate(target.list(folder)):
            if stat.key in keys:
                sizes[stat.key] = stat.size
            last = stat.key
            if seen >= patience:  # the folder holds far more than what is asked for
                unknown = [item for item in items if item.key > last]
                break
        else:
            return sizes
    with ThreadPoolExecutor(streams) as pool:
        for item, size in zip(unknown, pool.map(_size_of(target), unknown), strict=True):
            if size is not None:
                sizes[item.key] = size
    return sizes


def _size_of(target: Store) -> Callable[[Item], int | None]:
    def size(item: Item) -> int | None:
        try:
            return target.head(item.key).size
        except NotFoundError:
            return None

    return size


def _common_folder(items: Sequence[Item]) -> str:
    folders = {item.key.rpartition("/")[0] for item in items}
    common = os.path.commonpath(folders) if folders and "" not in folders else ""
    return f"{common}/" if common else ""
