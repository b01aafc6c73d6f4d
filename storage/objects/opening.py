"""From a URL to a store: file:// (a folder), memory:// (tests), s3:// and oss:// (bucket and prefix)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from regions.errors import InputError
from storage.objects.credentials import CredentialSource
from storage.objects.interface import Store


def open_store(
    url: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    credentials: CredentialSource | None = None,
) -> Store:
    """Return the store at a URL; stores over a network come with retries.

    `endpoint`, `region`: where the URL's cloud is not at its usual address. Without `credentials` the cloud's own
    variables and files are read (under `profile`, if given) and renewed while the store is used. InputError for a
    URL that names no store.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        from storage.objects.local import LocalStore

        return LocalStore(Path(unquote(parts.path)))
    if parts.scheme == "memory" and parts.netloc:
        from storage.objects.memory import named_store

        return named_store(parts.netloc + parts.path.rstrip("/"))
    if parts.scheme in ("s3", "oss") and parts.netloc and not parts.query:
        from storage.objects.retrying import Retrying

        if parts.scheme == "s3":
            from storage.objects.s3 import open_s3 as open_bucket
        else:
            from storage.objects.oss import open_oss as open_bucket
        return Retrying(open_bucket(url, endpoint=endpoint, region=region, profile=profile, credentials=credentials))
    raise InputError(
        f"{url!r} names no object store: expected file:///folder, s3://bucket/prefix, oss://bucket/prefix or "
        "memory://name",
        kind="store-url",
    )
