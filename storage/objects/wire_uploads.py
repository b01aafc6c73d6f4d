"""Multipart uploads, and copies too large for one request, over either protocol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote
from xml.sax.saxutils import escape

from regions.errors import IntegrityError
from storage.objects import replies
from storage.objects.client import BucketClient
from storage.objects.interface import Part, Upload, check_key

_COPIED_PART = 512 << 20


class WireUploads:
    """The uploads of one bucket."""

    def __init__(self, client: BucketClient) -> None:
        self._client, self._site, self._dialect = client, client.site, client.dialect
        self._send = client.send

    def open(self, key: str, storage_class: str | None) -> str:
        """Begin an upload; return its id."""
        headers = dict(self._dialect.opening)
        if storage_class:
            headers[self._dialect.header("storage-class")] = storage_class
        reply = self._send("POST", key, "open an upload of", query={"uploads": ""}, headers=headers)
        return replies.document(reply).findtext("UploadId", "")

    def parts(self, key: str, upload: str) -> tuple[Part, ...]:
        """Return the parts that the server has."""
        found: list[Part] = []
        while True:
            query = {"uploadId": upload, "max-parts": "1000"}
            if found:
                query["part-number-marker"] = str(found[-1].number)
            root = replies.document(self._send("GET", key, "list the parts of", query=query))
            before = len(found)
            for entry in replies.entries(root, "Part"):
                found.append(Part(int(entry["PartNumber"]), int(entry["Size"]), entry["ETag"].strip('"')))
            if root.findtext("IsTruncated", "").lower() != "true" or len(found) == before:
                return tuple(found)

    def complete(self, key: str, upload: str, parts: Sequence[Part], *, create: bool) -> None:
        """Make an upload the object."""
        if not parts or [part.number for part in parts] != list(range(1, len(parts) + 1)):
            raise IntegrityError(f"{self._client.url}/{key}: the parts named are not all the parts of upload {upload}")
        listed = "".join(
            f"<Part><PartNumber>{part.number}</PartNumber><ETag>&quot;{escape(part.tag)}&quot;</ETag></Part>"
            for part in parts
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        headers = dict(self._dialect.create_only) if create else {}
        action = "complete the upload of"
        reply = self._send("POST", key, action, query={"uploadId": upload}, headers=headers, body=body)
        self._client.check_late_error(reply, key, action)

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload."""
        self._send("DELETE", key, "abort an upload of", query={"uploadId": upload}, allowed=(404,))

    def list(self, folder: str) -> Iterator[Upload]:
        """Yield the open uploads of keys in a folder."""
        query = {"uploads": "", "prefix": self._site.prefix + folder}
        while True:
            root = replies.document(self._send("GET", None, "list the uploads of", query=query))
            for entry in replies.entries(root, "Upload"):
                key = entry["Key"].removeprefix(self._site.prefix)
                yield Upload(key, entry["UploadId"], replies.iso_date(entry["Initiated"]))
            marker = root.findtext("NextKeyMarker", "")
            if root.findtext("IsTruncated", "").lower() != "true" or not marker:
                return
            query |= {"key-marker": marker, "upload-id-marker": root.findtext("NextUploadIdMarker", "")}

    def copy_headers(self, source: str, version: str) -> dict[str, str]:
        """Return the headers that name one version of a copy's source in this bucket."""
        path = f"/{self._site.bucket}/{self._site.prefix}{check_key(source)}"
        return {
            self._dialect.header("copy-source"): quote(path, safe="/-_.~"),
            self._dialect.header("copy-source-if-match"): version,
        }

    def copy_in_parts(self, headers: dict[str, str], size: int, key: str, storage_class: str) -> None:
        """Copy a large object at the server, range by range."""
        upload, parts = self.open(key, storage_class), []
        part_size = min(_COPIED_PART, self._dialect.copy_limit)
        try:
            for number, start in enumerate(range(0, size, part_size), 1):
                end = min(start + part_size, size)
                sent = {**headers, self._dialect.header("copy-source-range"): f"bytes={start}-{end - 1}"}
                query = {"partNumber": str(number), "uploadId": upload}
                reply = self._send("PUT", key, f"copy part {number} to", query=query, headers=sent)
                self._client.check_late_error(reply, key, f"copy part {number} to")
                tag = replies.document(reply).findtext("ETag", "").strip('"')
                parts.append(Part(number, end - start, tag))
            self.complete(key, upload, parts, create=False)
        except BaseException:
            self.abort(key, upload)
            raise
