"""What tells S3's and OSS's protocols apart: names of headers, conditions, checksums, cold classes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from fastcrc import crc32, crc64

from storage.objects import files
from storage.objects.interface import Body
from storage.objects.signing import AWS4, OSS4, Scheme


@dataclass(frozen=True, slots=True)
class Dialect:
    """One protocol of the two. Names of headers are in lower case."""

    name: str
    scheme: Scheme
    create_only: Mapping[str, str]
    """The headers that ask never to replace an object."""
    reading: Mapping[str, str]
    """Headers sent with every read."""
    opening: Mapping[str, str]
    """Headers sent when an upload is opened."""
    stored_checksum: str
    """The header in which the server tells an object's checksum."""
    checksum: str
    """The name of that checksum."""
    standard_class: str
    infrequent_class: str
    cold_classes: frozenset[str]
    restore_job: str
    """The XML element that holds a restore's speed."""
    copy_limit: int
    """Bytes above which the server copies only part by part."""
    answers_with_checksum: bool
    """The server tells the checksum of what it received (the writer compares); else it is told and compares itself."""

    def header(self, name: str) -> str:
        """Return a header's full name, such as `x-amz-storage-class`."""
        return self.scheme.prefix + name

    def checksum_of(self, body: Body) -> str:
        """Return the body's checksum as the protocol writes it."""
        with files.viewed(body) as data:
            if self.answers_with_checksum:
                return str(crc64.xz(data))
            return base64.b64encode(crc32.iscsi(data).to_bytes(4, "big")).decode()


S3 = Dialect(
    name="s3",
    scheme=AWS4,
    create_only={"if-none-match": "*"},
    reading={"x-amz-checksum-mode": "ENABLED"},
    opening={"x-amz-checksum-algorithm": "CRC32C", "x-amz-checksum-type": "FULL_OBJECT"},
    stored_checksum="x-amz-checksum-crc32c",
    checksum="crc32c",
    standard_class="STANDARD",
    infrequent_class="STANDARD_IA",
    cold_classes=frozenset({"GLACIER", "DEEP_ARCHIVE"}),
    restore_job="GlacierJobParameters",
    copy_limit=5 << 30,
    answers_with_checksum=False,
)

OSS = Dialect(
    name="oss",
    scheme=OSS4,
    create_only={"x-oss-forbid-overwrite": "true"},
    # Without it a range beyond the end is answered with the whole object and status 200.
    reading={"x-oss-range-behavior": "standard"},
    opening={},
    stored_checksum="x-oss-hash-crc64ecma",
    checksum="crc64ecma",
    standard_class="Standard",
    infrequent_class="IA",
    cold_classes=frozenset({"Archive", "ColdArchive", "DeepColdArchive"}),
    restore_job="JobParameters",
    copy_limit=1 << 30,
    answers_with_checksum=True,
)


def content_md5(body: Body) -> str:
    """Return the Content-MD5 of a body, for servers that check nothing better."""
    with files.viewed(body) as data:
        return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
