"""From replies of S3 and OSS servers to our values and errors: the one seam to both protocols."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

from regions.errors import (
    CapabilityError,
    ConflictError,
    IntegrityError,
    NightrelayError,
    NotFoundError,
    NotReadyError,
    OutsideError,
    StoreUnavailable,
    TransientError,
)
from storage.objects.dialects import Dialect
from storage.objects.http import Reply
from storage.objects.interface import Access, Stat

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EXPIRED = {"ExpiredToken", "SecurityTokenExpired", "InvalidSecurityToken.Expired", "TokenRefreshRequired"}
_DAMAGED = {"BadDigest", "InvalidDigest", "XAmzContentChecksumMismatch", "IncompleteBody", "ContentChecksumMismatch"}
_BUSY = {"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable", "Busy", "QpsLimitExceeded",
         "ConditionalRequestConflict", "OperationAborted", "OperationConflict", "RequestTimeTooSkewed"}  # fmt: skip
_PRESENT = {"PreconditionFailed", "FileAlreadyExists", "FileImmutable", "NotModified"}
_PARTS = {"InvalidPart", "InvalidPartOrder", "EntityTooSmall", "InvalidRange"}


def error_of(reply: Reply, dialect: Dialect, store: str, key: str, action: str) -> NightrelayError:
    """Return our error for a reply that is no success."""
    code = _field(reply, "Code")
    said = _field(reply, "Message") or f"HTTP {reply.status}"
    where = f"{store}/{key}" if key else store
    text = f"cannot {action} {where}: {code or reply.status}: {said}"
    facts: dict[str, Any] = {"store": store, "key": key, "status": reply.status, "code": code}
    if reply.status == 404 and code == "NoSuchBucket":
        return OutsideError(f"{text}; create the bucket, or mend the URL", kind="no-bucket", **facts)
    if reply.status == 404:
        return NotFoundError(text, **facts)
    if code in _EXPIRED:
        return OutsideError(f"{text}; renew the credentials, then try again", kind="credentials-expired", **facts)
    if code in _PRESENT or reply.status == 412:
        return ConflictError(text, **facts)
    if code == "InvalidObjectState":
        return NotReadyError(f"{text}; it is frozen: restore it first", kind="frozen", **facts)
    if code in _DAMAGED:
        return TransientError(text, kind="damaged-on-the-way", **facts)
    if code in _PARTS or reply.status == 416:
        return IntegrityError(text, **facts)
    if reply.status == 501:
        return CapabilityError(f"{text}; this server does not implement it", **facts)
    if code in _BUSY or reply.status in (408, 429) or reply.status >= 500:
        return StoreUnavailable(text, retry_after=retry_after(reply), sent=True, **facts)
    if reply.status in (301, 307, 308):
        return OutsideError(f"{text}; the bucket lies elsewhere: set its region or endpoint", kind="moved", **facts)
    if reply.status in (401, 403):
        return OutsideError(
            f"{text}; check that the credentials in use may {action} there and that this machine's clock is right",
            kind="access-denied",
            **facts,
        )
    return OutsideError(text, kind="store-refused", **facts)


def retry_after(reply: Reply) -> float | None:
    """Return how many seconds the server asks to be left alone for."""
    if delay := reply.headers.get("x-oss-qos-delay-time", ""):
        return float(delay) / 1000 if delay.isdigit() else None
    seconds = reply.headers.get("retry-after", "")
    return float(seconds) if seconds.isdigit() else None


def stat_of(reply: Reply, dialect: Dialect, key: str, size: int | None = None) -> Stat:
    """Return the facts of an object from a reply's headers. `size`: of what was written, where the reply lacks it."""
    headers = reply.headers
    storage_class = headers.get(dialect.header("storage-class"), dialect.standard_class)
    access, until = _access(headers.get(dialect.header("restore"), ""), storage_class in dialect.cold_classes)
    checksum = headers.get(dialect.stored_checksum, "")
    return Stat(
        key=key,
        size=int(headers.get("content-length", "0")) if size is None else size,
        version=headers.get("etag", "").strip('"'),
        modified=http_date(headers.get("last-modified") or headers.get("date", "")),
        storage_class=storage_class,
        checksum=f"{dialect.checksum}:{checksum}" if checksum else "",
        access=access,
        readable_until=until,
    )


def listed_stat(entry: Mapping[str, str], dialect: Dialect, key: str) -> Stat:
    """Return the facts of an object from a listing. A listing cannot tell that a frozen object was restored."""
    storage_class = entry.get("StorageClass") or dialect.standard_class
    return Stat(
        key=key,
        size=int(entry["Size"]),
        version=entry.get("ETag", "").strip('"'),
        modified=iso_date(entry["LastModified"]),
        storage_class=storage_class,
        access="frozen" if storage_class in dialect.cold_classes else "ready",
    )


def document(reply: Reply) -> ElementTree.Element:
    """Return a reply's XML with its namespace taken off: S3 has one, OSS has none."""
    try:
        root = ElementTree.fromstring(reply.body)
    except ElementTree.ParseError as error:
        raise StoreUnavailable(f"the reply is no XML: {error}: {reply.body[:80]!r}", sent=True) from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def entries(root: ElementTree.Element, name: str) -> Iterator[dict[str, str]]:
    """Yield the children of each `name` element as text by tag."""
    for element in root.iter(name):
        yield {child.tag: child.text or "" for child in element}


def http_date(text: str) -> datetime:
    """Return the instant of an HTTP date (`Tue, 01 Dec 2026 08:00:00 GMT`); the epoch where there is none."""
    match = re.match(r"\w+, (\d+)[ -](\w{3})[ -](\d{4}) (\d\d):(\d\d):(\d\d)", text)
    if match is None or match[2] not in _MONTHS:
        return datetime(1970, 1, 1, tzinfo=UTC)
    hour, minute, second = (int(match[n]) for n in (4, 5, 6))
    return datetime(int(match[3]), _MONTHS.index(match[2]) + 1, int(match[1]), hour, minute, second, tzinfo=UTC)


def iso_date(text: str) -> datetime:
    """Return the instant of a listing's date."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def _access(restore: str, cold: bool) -> tuple[Access, datetime | None]:
    if 'ongoing-request="true"' in restore:
        return "restoring", None
    if 'ongoing-request="false"' in restore:
        until = re.search(r'expiry-date="([^"]+)"', restore)
        return "ready", http_date(until[1]) if until else None
    return ("frozen" if cold else "ready"), None


def _field(reply: Reply, name: str) -> str:
    match = re.search(rf"<{name}>(.*?)</{name}>".encode(), reply.body, re.DOTALL)
    return match[1].decode("utf-8", "replace") if match else ""
