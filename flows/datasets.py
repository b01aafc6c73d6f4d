"""Finds the dataset a run names, and lays it where a leg can read it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from flows.messages import DatasetRef, Place
from flows.sites import Sites, open_place
from regions.errors import Fault, RequestError
from regions.planning.request import RunRequest
from storage.datasets.manifest import Manifest, is_manifest
from storage.handoff import Document, Item, Receipt, handoff
from storage.objects import Store


def dataset_of(request: RunRequest, sites: Sites) -> DatasetRef | None:
    """Return the run's dataset by its manifest; RequestError where the URL holds none."""
    if request.dataset is None:
        return None
    place, folder = locate(request.dataset.url, request, sites)
    manifest = find_manifest(open_place(place), folder)
    if manifest is None:
        fault = Fault(
            request.id, None, "dataset.url", repr(request.dataset.url), "a folder with a dataset's manifest",
            f"looked in {place.url}/{folder}; build one there with `nightrelay data build`",
        )  # fmt: skip
        raise RequestError("the run's dataset is not there:", [fault])
    return DatasetRef(digest=manifest.digest, source=place, folder=folder, bytes=manifest.size)


def locate(url: str, request: RunRequest, sites: Sites) -> tuple[Place, str]:
    """Return the store and the folder of a dataset's URL.

    `tiered://<region>/<folder>` lies in that region's store. Any other URL is a store of its own, counted as lying at
    the run's home.
    """
    parts = urlsplit(url)
    if parts.scheme == "tiered":
        return sites.place(parts.netloc), parts.path.strip("/")
    base, _, folder = url.rstrip("/").rpartition("/")
    return Place(region=request.regions.home or "", url=base, endpoint=None), folder


def find_manifest(store: Store, folder: str) -> Manifest | None:
    """Return the newest manifest in a folder of a store, checked against the digest in its name."""
    found = [stat for stat in store.list(f"{folder}/") if is_manifest(stat.key.rpartition("/")[2])]
    if not found:
        return None
    newest = max(found, key=lambda stat: (stat.modified, stat.key))
    return Manifest.parse(store.get(newest.key), newest.key)


def copy_dataset(ref: DatasetRef, source: Store, target: Store, stop: Callable[[], bool]) -> Receipt:
    """Bring a dataset into another store, into the folder of the same name: verified, manifest last.

    A region's store and the hot tier of a leg's machine are both filled so.
    """
    key = manifest_key(ref)
    manifest = Manifest.parse(source.get(key), key)
    items = [Item(f"{ref.folder}/{name}", size, digest) for name, size, digest in manifest.items()]
    return handoff(items, [Document(key, manifest.data)], source, target, cancelled=stop)


def manifest_key(ref: DatasetRef) -> str:
    """Return the key of a dataset's manifest, the same in every store."""
    return f"{ref.folder}/manifest-{ref.digest}.json"
