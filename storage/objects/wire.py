"""The driver for both HTTP protocols, S3 and OSS: every request is signed with the credentials of that moment.

It retries nothing (storage.objects.retrying does), except once when the credentials were renewed while a request with
the old ones was refused. What the server really promises is asked for once per bucket and process (probe).

Longer than other modules: one class has one method for each verb of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from xml.sax.saxutils import escape

from regions.errors import ConflictError, IntegrityError, NotFoundError
from storage.objects import replies
from storage.objects.client import BucketClient, damaged
from storage.objects.dialects import content_md5
from storage.objects.http import Reply
from storage.objects.interface import (
    Body,
    Capabilities,
    Part,
    Stat,
    Upload,
    check_folder,
    require,
    size_of,
)
from storage.objects.probe import probe
from storage.objects.wire_uploads import WireUploads


class WireStore:
    """A bucket, or a prefix in one, reached over HTTP."""

    def __init__(self, client: BucketClient) -> None:
        self.url = client.url
        self._client, self._site, self._dialect = client, client.site, client.dialect
        self._send = client.send
        self._uploads = WireUploads(client)
        self._with_md5 = False
        # A checksum is believed from a server that refuses wrong ones: others store what they were told.
        self._believed = self._dialect.answers_with_checksum

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the server was seen to do."""
        answered = self._dialect.checksum if self._dialect.answers_with_checksum else ""
        found = probe(self, infrequent_class=self._dialect.infrequent_class, answers_with_checksum=answered)
        self._with_md5 = found.wire_checksum == "md5"
        self._believed = bool(found.wire_checksum)
        return found

    def head(self, key: str) -> Stat:
        """Return what is known about an object."""
        reply = self._send("HEAD", key, "look at", headers=self._dialect.reading)
        return replies.stat_of(reply, self._dialect, key)

    def get(self, key: str, *, start: int = 0, size: int | None = None, version: str | None = None) -> bytes:
        """Return a range of an object's bytes; a whole object is checked against the server's checksum."""
        if size is not None:
            buffer = bytearray(size)
            self.fetch(key, memoryview(buffer), start=start, version=version)
            return bytes(buffer)
        headers = self._reading(version)
        if start:
            headers["range"] = f"bytes={start}-"
        reply = self._send("GET", key, "read", headers=headers)
        if start:
            self._check_range(reply, key, start, None)
        else:
            self._check_stored(reply, reply.body, key)
        return reply.body

    def fetch(self, key: str, into: memoryview, *, start: int = 0, version: str | None = None) -> None:
        """Fill a buffer from an object."""
        if not into.nbytes:
            stat = self.head(key)
            if start > stat.size or version not in (None, stat.version):
                raise IntegrityError(f"{self.url}/{key}: no range of version {version} begins at {start}")
            return
        headers = self._reading(version)
        headers["range"] = f"bytes={start}-{start + into.nbytes - 1}"
        reply = self._send("GET", key, "read", headers=headers, into=into)
        self._check_range(reply, key, start, into.nbytes)
        if self._is_whole(reply, into.nbytes):
            self._check_stored(reply, into, key)

    def put(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
    ) -> Stat:
        """Write an object with one request."""
        if create:
            require(self, "create_only", f"create {key!r} without the risk of replacing it")
        if if_match is not None:
            require(self, "if_match", f"replace exactly one version of {key!r}")
        return self.put_unchecked(key, body, create=create, if_match=if_match, storage_class=storage_class)

    def put_unchecked(
        self,
        key: str,
        body: Body,
        *,
        create: bool = False,
        if_match: str | None = None,
        storage_class: str | None = None,
        checksum: Mapping[str, str] | None = None,
    ) -> Stat:
        """Write an object on conditions that the server may ignore: only the probe may call this directly."""
        headers = self._class_headers(storage_class)
        if create:
            headers |= self._dialect.create_only
        if if_match is not None:
            headers["if-match"] = if_match
        try:
            reply = self._send_body(key, body, "write", headers, {}, checksum)
        except NotFoundError as error:
            if if_match is None:
                raise
            raise ConflictError(f"{self.url}/{key} is not version {if_match}: it is not there") from error
        return replies.stat_of(reply, self._dialect, key, size_of(body))

    def put_many(self, objects: Sequence[tuple[str, Body]], *, storage_class: str | None = None) -> tuple[Stat, ...]:
        """Write many objects, one after the other."""
        return tuple(self.put(key, body, storage_class=storage_class) for key, body in objects)

    def open_upload(self, key: str, *, size: int, part_size: int, storage_class: str | None = None) -> str:
        """Begin a multipart upload."""
        return self._uploads.open(key, storage_class)

    def put_part(self, key: str, upload: str, number: int, body: Body) -> Part:
        """Write one part."""
        query = {"partNumber": str(number), "uploadId": upload}
        reply = self._send_body(key, body, f"write part {number} of", {}, query, None)
        return Part(number, size_of(body), reply.headers.get("etag", "").strip('"'))

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Return the parts that the server has."""
        return self._uploads.parts(key, upload)

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Make an upload the object."""
        if create:
            require(self, "create_only_upload", f"complete an upload of {key!r} without the risk of replacing it")
        return self.complete_unchecked(key, upload, parts, create=create)

    def complete_unchecked(self, key: str, upload: str, parts: Sequence[Part], *, create: bool = False) -> Stat:
        """Complete an upload on a condition that the server may ignore: only the probe may call this directly."""
        self._uploads.complete(key, upload, parts, create=create)
        return self.head(key)

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload."""
        self._uploads.abort(key, upload)

    def uploads(self, folder: str = "") -> Iterator[Upload]:
        """Yield the open uploads."""
        return self._uploads.list(check_folder(folder))

    def copy(
        self, source: str, key: str, *, source_version: str | None = None, storage_class: str | None = None
    ) -> Stat:
        """Copy inside the bucket, at the server."""
        # Not every server heeds the condition on the source, and the class must be asked for: look first.
        found = self.head(source)
        if source_version is not None and found.version != source_version:
            raise ConflictError(f"{self.url}/{source} is version {found.version}, not {source_version}")
        chosen = storage_class or found.storage_class
        headers = self._uploads.copy_headers(source, found.version)
        if found.size > self._dialect.copy_limit:
            self._uploads.copy_in_parts(headers, found.size, key, chosen)
            return self.head(key)
        headers |= self._class_headers(chosen)
        headers[self._dialect.header("metadata-directive")] = "REPLACE" if source == key else "COPY"
        reply = self._send("PUT", key, "copy to", headers=headers)
        self._client.check_late_error(reply, key, "copy to")
        return self.head(key)

    def set_class(self, key: str, storage_class: str) -> Stat:
        """Copy an object onto itself in another class."""
        require(self, "classes", f"move {key!r} to class {storage_class}")
        return self.copy(key, key, storage_class=storage_class)

    def restore(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Ask for a frozen object back."""
        require(self, "restore", f"restore {key!r}")
        return self.restore_unchecked(key, days=days, speed=speed)

    def restore_unchecked(self, key: str, *, days: int, speed: str = "Standard") -> Stat:
        """Ask whatever the server can do: only the probe may call this directly."""
        job = self._dialect.restore_job
        body = f"<RestoreRequest><Days>{days}</Days><{job}><Tier>{escape(speed)}</Tier></{job}></RestoreRequest>"
        headers = {"content-md5": content_md5(body.encode())}
        self._send("POST", key, "restore", query={"restore": ""}, headers=headers, body=body.encode(), allowed=(409,))
        return self.head(key)

    def list(self, folder: str = "") -> Iterator[Stat]:
        """Yield the objects in a folder by key, a thousand at a time, from the server."""
        query = {"list-type": "2", "prefix": self._site.prefix + check_folder(folder), "max-keys": "1000"}
        while True:
            root = replies.document(self._send("GET", None, "list", query=query))
            for entry in replies.entries(root, "Contents"):
                yield replies.listed_stat(entry, self._dialect, entry["Key"].removeprefix(self._site.prefix))
            token = root.findtext("NextContinuationToken", "")
            if root.findtext("IsTruncated", "").lower() != "true" or not token:
                return
            query["continuation-token"] = token

    def delete(self, key: str, *, if_match: str | None = None) -> None:
        """Delete an object; with `if_match` after a look at it, and at the server's own check where it has one."""
        headers = {}
        if if_match is not None:
            found = self._version_there(key)
            if found != if_match:
                raise ConflictError(f"{self.url}/{key} stays as it is: it is version {found}, not {if_match}")
            headers["if-match"] = if_match
        self._send("DELETE", key, "delete", headers=headers, allowed=(404,))

    def delete_unchecked(self, key: str, if_match: str) -> None:
        """Delete on a condition that only the server checks: only the probe may call this directly."""
        self._send("DELETE", key, "delete", headers={"if-match": if_match})

    def sweep(self, older_than: float) -> int:
        """Return 0: a write that was cut off leaves nothing."""
        return 0

    def path(self, key: str) -> Path | None:
        """Return None: the object is elsewhere."""
        return None

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()

    def _reading(self, version: str | None) -> dict[str, str]:
        headers = dict(self._dialect.reading)
        if version is not None:
            headers["if-match"] = version
        return headers

    def _class_headers(self, storage_class: str | None) -> dict[str, str]:
        return {self._dialect.header("storage-class"): storage_class} if storage_class else {}

    def _send_body(
        self,
        key: str,
        body: Body,
        action: str,
        headers: dict[str, str],
        query: Mapping[str, str],
        checksum: Mapping[str, str] | None,
    ) -> Reply:
        computed = self._dialect.checksum_of(body)
        told = {} if self._dialect.answers_with_checksum else {self._dialect.stored_checksum: computed}
        if self._with_md5 or (
            self._dialect.answers_with_checksum and self._dialect.create_only.items() <= headers.items()
        ):
            # A damaged object that may not be replaced would stand for good: have it refused instead.
            told["content-md5"] = content_md5(body)
        sent = {**headers, **(told if checksum is None else checksum)}
        reply = self._send("PUT", key, action, query=query, headers=sent, body=body)
        if self._dialect.answers_with_checksum:
            got = reply.headers.get(self._dialect.stored_checksum, computed)
            if got != computed:
                raise damaged(self.url, key, got, computed)
        return reply

    def _check_range(self, reply: Reply, key: str, start: int, size: int | None) -> None:
        """Raise unless the reply is the range that was asked for: some servers answer 200 and something else."""
        given = reply.headers.get("content-range", "")
        begins = given.removeprefix("bytes ").partition("-")[0]
        whole = reply.status == 200 and not given and start == 0
        if (begins != str(start) and not whole) or (size is not None and not reply.filled):
            raise IntegrityError(
                f"{self.url}/{key}: asked for {size if size is not None else 'all'} bytes from {start}, the server "
                f"offers {given or 'all'} ({reply.headers.get('content-length')} bytes)"
            )

    def _is_whole(self, reply: Reply, size: int) -> bool:
        given = reply.headers.get("content-range", "")
        return not given or given == f"bytes 0-{size - 1}/{size}"

    def _check_stored(self, reply: Reply, data: Body, key: str) -> None:
        """Raise for bytes that are not those the server stored, where it tells a checksum of the whole object."""
        expected = reply.headers.get(self._dialect.stored_checksum, "")
        of_parts = "-" in reply.headers.get("etag", "") and not self._dialect.answers_with_checksum
        if not expected or of_parts or not self._believed:
            return  # S3 servers disagree on what they tell of objects that came in parts; the BLAKE3 digest decides
        if (got := self._dialect.checksum_of(data)) != expected:
            raise damaged(self.url, key, got, expected)

    def _version_there(self, key: str) -> str | None:
        try:
            return self.head(key).version
        except NotFoundError:
            return None
