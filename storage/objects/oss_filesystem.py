"""`oss://` for fsspec: ossfs where it is right, our driver where bytes move.

The plain class reads a byte too many, deletes before it writes, loses the storage class on copies, signs version 1
only, never retries a busy server and publishes what a failed writer left; tests/storage/objects/test_oss_filesystem.py
shows each of these and its absence here. register() makes this class the one that fsspec opens.

Longer than other modules: it overrides one class, method by method.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import oss2
from fsspec.callbacks import DEFAULT_CALLBACK, Callback
from fsspec.registry import register_implementation
from oss2.credentials import Credentials, CredentialsProvider
from ossfs import OSSFileSystem as PlainOssFileSystem

from regions.clock import SystemClock
from regions.errors import NotFoundError, StoreUnavailable
from storage.objects.client import Site
from storage.objects.credentials import Credential, CredentialSource
from storage.objects.interface import FileRange, Stat, Store
from storage.objects.oss import open_oss, site_of
from storage.objects.oss_credentials import OssCredentials
from storage.objects.oss_writing import Writer, uploading
from storage.objects.retrying import Retrying

_BLOCK = 8 << 20
_PIECE = 8 << 20


class OssFileSystem(PlainOssFileSystem):  # type: ignore[misc]
    """ossfs corrected. `region` is needed where the endpoint does not name it; a custom domain is told by itself."""

    protocol = "oss"

    def __init__(
        self,
        endpoint: str | None = None,
        key: str | None = None,
        secret: str | None = None,
        token: str | None = None,
        region: str | None = None,
        **options: Any,
    ) -> None:
        self._chain: CredentialSource = OssCredentials(SystemClock())
        self._region = region or self._chain.setting("region")
        if key and secret:
            given = Credential(key, secret, token)
            self._chain = lambda: given
        options.setdefault("default_block_size", _BLOCK)
        super().__init__(endpoint=endpoint or os.environ.get("OSS_ENDPOINT"), key=key, secret=secret, **options)
        self._auth = oss2.ProviderAuthV4(_Provider(self._chain))
        self._stores: dict[str, Store] = {}

    # -- bytes: through our driver ---------------------------------------------------------------------------------

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        """Return bytes [start, end) as Python's slices mean them."""
        store, key = self._place(path)
        if start is None and end is None:
            return store.get(key)
        stat = store.head(key)
        first, last, _ = slice(start, end).indices(stat.size)
        return store.get(key, start=first, size=max(0, last - first), version=stat.version)

    def get_object(self, path: str, start: int, end: int) -> bytes:
        """Return bytes [start, end): what fsspec's caches ask for."""
        return self.cat_file(path, start, end)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        """Write an object with one request; `mode="create"` never replaces."""
        store, key = self._place(path)
        store.put(key, value, create=mode == "create", storage_class=_class_in(options))

    def put_file(
        self,
        lpath: str,
        rpath: str,
        callback: Callback = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **options: Any,
    ) -> None:
        """Send a file, whole or in parts; a failed one leaves no upload behind."""
        if Path(lpath).is_dir():
            return
        store, key = self._place(rpath)
        create, chosen = mode == "create", _class_in(options)
        with Path(lpath).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            callback.set_size(size)
            if size <= _BLOCK:
                store.put(key, FileRange(file.fileno(), 0, size), create=create, storage_class=chosen)
                callback.relative_update(size)
                return
            with uploading(store, key, _BLOCK, chosen, create) as parts:
                for number, start in enumerate(range(0, size, _BLOCK), 1):
                    piece = min(_BLOCK, size - start)
                    parts.write(number, FileRange(file.fileno(), start, piece))
                    callback.relative_update(piece)

    def get_file(self, rpath: str, lpath: str, callback: Callback | None = None, **options: Any) -> None:
        """Fetch an object of one version; the file appears under its name only when it is whole."""
        if self.isdir(rpath):
            Path(lpath).mkdir(parents=True, exist_ok=True)
            return
        store, key = self._place(rpath)
        stat = store.head(key)
        told = callback or DEFAULT_CALLBACK
        told.set_size(stat.size)
        target = Path(lpath)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".part-", delete=False) as file:
            try:
                buffer = memoryview(bytearray(min(_PIECE, stat.size)))
                for start in range(0, stat.size, _PIECE):
                    piece = buffer[: min(_PIECE, stat.size - start)]
                    store.fetch(key, piece, start=start, version=stat.version)
                    file.write(piece)
                    told.relative_update(len(piece))
                file.flush()
                Path(file.name).replace(target)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Copy at the server inside a bucket, through here between buckets; the class is kept unless one is given."""
        source, key = self._place(path1)
        target, new_key = self._place(path2)
        chosen = _class_in(options)
        if source is target:
            source.copy(key, new_key, storage_class=chosen)
            return
        stat = source.head(key)
        with tempfile.TemporaryFile(buffering=0) as file:
            for start in range(0, stat.size, _PIECE):
                file.write(source.get(key, start=start, size=min(_PIECE, stat.size - start), version=stat.version))
            target.put(new_key, FileRange(file.fileno(), 0, stat.size), storage_class=chosen or stat.storage_class)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        if "r" in mode:
            return super()._open(path, mode, block_size, autocommit, cache_options, **options)
        if "a" in mode:
            raise NotImplementedError("oss:// objects are never appended to: write a new one")
        return Writer(
            self, *self._place(path), path, max(block_size or _BLOCK, 1 << 20), _class_in(options), "x" in mode
        )

    def touch(self, path: str, truncate: bool = True, **options: Any) -> None:
        """Write an empty object, unless one is there and `truncate` is false."""
        if truncate or not self.exists(path):
            self.pipe_file(path, b"")

    # -- facts: always the server's, no cache ------------------------------------------------------------------------

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """Return an object's facts with one request, ETag, checksum and class among them; or say it is a folder."""
        bucket, key = self.split_path(path)
        with contextlib.suppress(NotFoundError):
            if key:
                store, name = self._place(path)
                return _info(f"{bucket}/{key}", store.head(name))
        if not key or self._ls_dir(path):
            return {"name": f"{bucket}/{key}".rstrip("/"), "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def exists(self, path: str, **options: Any) -> bool:
        """Tell whether an object or folder is there."""
        if not self._strip_protocol(path).strip("/"):
            return True
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def ukey(self, path: str) -> str:
        """Return the object's version: no byte is read for it."""
        store, key = self._place(path)
        return store.head(key).version

    def checksum(self, path: str) -> str:
        """Return the object's version."""
        return self.ukey(path)

    def _ls_dir(self, path: str, delimiter: str = "/", prefix: str = "", **options: Any) -> list[dict[str, Any]]:
        bucket, key = self.split_path(path.strip("/"))
        return self._get_object_info_list(bucket, f"{key}/{prefix}" if key else prefix, delimiter, None)

    def _get_object_info_list(
        self, bucket_name: str, prefix: str, delimiter: str, connect_timeout: int | None
    ) -> list[dict[str, Any]]:
        found = self._call_oss("ObjectIterator", prefix=prefix, delimiter=delimiter, max_keys=1000, bucket=bucket_name)
        return [
            self._transfer_object_info_to_dict(bucket_name, entry)
            for entry in found
            if entry.key != prefix or not entry.key.endswith("/")
        ]

    # -- the wire that ossfs's own calls use: version 4, every status retried that deserves it -------------------------

    def _get_bucket(self, bucket_name: str, connect_timeout: int | None = None) -> Any:
        site = self._site(bucket_name)
        cname = not site.path_style and not (self._endpoint or "").endswith("aliyuncs.com")
        return oss2.Bucket(
            self._auth,
            self._endpoint or f"https://oss-{site.region}.aliyuncs.com",
            bucket_name,
            is_cname=cname,
            session=self._session,
            connect_timeout=connect_timeout,
            region=site.region,
        )

    def _call_oss(
        self, method_name: str, *args: Any, bucket: str | None = None, timeout: int | None = None, **options: Any
    ) -> Any:
        from tenacity import Retrying as Attempts
        from tenacity import retry_if_exception, stop_after_attempt, wait_random_exponential

        def call() -> Any:
            service = self._get_bucket(bucket, timeout) if bucket else self._service(timeout)
            method = getattr(service, method_name, None)
            found = method(*args, **options) if method else getattr(oss2, method_name)(service, *args, **options)
            return list(found) if method_name.endswith("Iterator") else found

        try:
            return Attempts(
                stop=stop_after_attempt(6),
                wait=wait_random_exponential(0.1, 5),
                retry=retry_if_exception(_worth_another_try),
                reraise=True,
            )(call)
        except (oss2.exceptions.NoSuchKey, oss2.exceptions.NoSuchBucket) as error:
            raise NotFoundError(f"oss://{bucket}: {error.code}: {method_name}") from error
        except oss2.exceptions.AccessDenied as error:
            raise PermissionError(f"oss://{bucket}: {error.code}: {method_name}") from error
        except oss2.exceptions.OssError as error:
            raise StoreUnavailable(f"oss://{bucket}: {method_name} failed: {error.status} {error.code}") from error

    def _service(self, timeout: int | None) -> Any:
        endpoint = self._endpoint or f"https://oss-{self._region}.aliyuncs.com"
        return oss2.Service(self._auth, endpoint, connect_timeout=timeout, region=self._site("any").region)

    def _site(self, bucket: str) -> Site:
        return site_of(f"oss://{bucket}", self._endpoint, self._region)

    def _place(self, path: str) -> tuple[Store, str]:
        bucket, key = self.split_path(path)
        store = self._stores.get(bucket)
        if store is None:
            url = f"oss://{bucket}"
            opened = open_oss(url, endpoint=self._endpoint, region=self._region, credentials=self._chain)
            store = self._stores.setdefault(bucket, Retrying(opened))
        return store, key


class _Provider(CredentialsProvider):  # type: ignore[misc]
    """Our credential source as oss2 asks for it."""

    def __init__(self, source: CredentialSource) -> None:
        self._source = source

    def get_credentials(self) -> Any:
        """Return the credentials of this moment."""
        now = self._source()
        return Credentials(now.access, now.secret, now.token or "")


def register() -> None:
    """Make fsspec open oss:// with this class, in this process."""
    register_implementation("oss", OssFileSystem, clobber=True)


def _worth_another_try(error: BaseException) -> bool:
    if isinstance(error, oss2.exceptions.RequestError):
        return True
    return isinstance(error, oss2.exceptions.ServerError) and (error.status >= 500 or error.status in (408, 429))


def _class_in(options: dict[str, Any]) -> str | None:
    headers = options.get("headers") or {}
    found = options.get("storage_class") or {name.lower(): headers[name] for name in headers}.get("x-oss-storage-class")
    return str(found) if found else None


def _info(name: str, stat: Stat) -> dict[str, Any]:
    return {
        "name": name,
        "type": "file",
        "size": stat.size,
        "LastModified": int(stat.modified.timestamp()),
        "ETag": stat.version,
        "checksum": stat.checksum,
        "StorageClass": stat.storage_class,
    }
