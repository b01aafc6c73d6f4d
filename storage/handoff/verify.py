"""Verifying at the target: by the bytes that are there, or by bytes hashed here whose arrival it vouches for."""

from __future__ import annotations

import contextlib

from regions.errors import IntegrityError, NightrelayError, NotFoundError
from storage.handoff.model import Item
from storage.handoff.survey import digest_at
from storage.handoff.tally import Tally
from storage.objects.interface import Store


def settle(item: Item, source: Store, target: Store, tally: Tally) -> None:
    """Raise unless the target holds the item's very bytes; a wrong object is removed.

    The error says whose fault it is: a source that is itself damaged cannot be handed off from.
    """
    got = digest_at(target, item)
    if target.path(item.key) is None:
        tally.read_back(item.size)
    if got != item.digest:
        target.delete(item.key)
        raise wrong(item, source, target, got)


def wrong(item: Item, source: Store, target: Store, got: str) -> IntegrityError:
    """Return the error for bytes that are not the item's, after asking whether the source has the right ones."""
    there = "unreadable"
    with contextlib.suppress(NightrelayError):
        there = digest_at(source, item)
    blame = "the source holds the right bytes: try again" if there == item.digest else "the source is damaged"
    return IntegrityError(
        f"{item.key}: brought from {source.url} to {target.url} its digest is {got}, expected {item.digest}; {blame}; "
        "nothing was left under that key",
        key=item.key,
        source=source.url,
        target=target.url,
        source_damaged=there != item.digest,
    )


def vouched(target: Store) -> bool:
    """Tell whether bytes hashed here and accepted there need not be read back."""
    return target.path("any") is not None or bool(target.capabilities.wire_checksum)


def is_there(item: Item, target: Store) -> bool:
    """Tell whether the target has an object of the item's size under its key."""
    try:
        return target.head(item.key).size == item.size
    except NotFoundError:
        return False
