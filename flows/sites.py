"""Opens a region's store for the control side, and keeps it open: one store object per region and process."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from flows.messages import Place
from flows.settings import Settings, Site
from regions.errors import IntegrityError, NotFoundError
from regions.model import Catalog
from storage.objects import Store, open_store

_M = TypeVar("_M", bound=BaseModel)


class Sites:
    """Where each region's store is, by the settings' overlay or else its region file, and the opened stores."""

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self._settings = settings
        self._catalog = catalog
        self._stores: dict[str, Store] = {}

    def place(self, region: str) -> Place:
        """Return where the region's store is."""
        site = self._settings.sites.get(region)
        if site is None:
            if region not in self._catalog.regions:
                raise NotFoundError(f"no region {region!r} in the catalog {self._settings.catalog}")
            cold = self._catalog.regions[region].storage.cold
            site = Site(cold.url, cold.endpoint.public if cold.endpoint else None)
        return Place(region=region, url=site.url, endpoint=site.endpoint)

    def store(self, region: str) -> Store:
        """Return the region's store, opened once."""
        if region not in self._stores:
            self._stores[region] = open_place(self.place(region))
        return self._stores[region]


def open_place(place: Place) -> Store:
    """Open the store of a place; credentials come from the clouds' own variables and files, by region as profile."""
    return open_store(place.url, endpoint=place.endpoint, profile=place.region)


def put_message(store: Store, key: str, message: BaseModel, *, create: bool = False) -> None:
    """Write a message whole; with `create`, ConflictError where one stands already."""
    store.put(key, message.model_dump_json().encode(), create=create)


def read_message(store: Store, key: str, kind: type[_M]) -> _M | None:
    """Return a message, or None where there is none; IntegrityError where it is not what it should be."""
    try:
        text = store.get(key)
    except NotFoundError:
        return None
    try:
        return kind.model_validate_json(text)
    except ValueError as error:
        raise IntegrityError(f"{key} is no {kind.__name__.lower()}: {error}") from error
