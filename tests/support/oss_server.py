"""An OSS server on loopback, for tests: the native protocol as its clients parse it, and OSS's habits enforced.

Both signatures are verified, XML has no namespace, checksums are CRC-64/XZ, parts below 100 KB are refused, copies stay
inside a region and below a limit, appends need the right position, archives must be restored, on a clock of its own.
`ignores_conditions` makes it accept every condition on writes and heed none. Objects live in memory.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from fastcrc import crc64

from regions.clock import ManualClock
from tests.support.oss_signatures import access_key, authorized

RESTORE_SECONDS = {"Archive": 60, "ColdArchive": 3600, "DeepColdArchive": 12 * 3600}
SMALLEST_PART = 100 * 1024


@dataclass
class Account:
    """A key pair the server knows; `expires` (on the real clock) ends it."""

    secret: str
    token: str | None = None
    expires: datetime | None = None
    version_4_only: bool = False
    """As for accounts that were opened since 2025-03: version 1 signatures are refused."""


@dataclass
class Thing:
    """An object."""

    data: bytes
    storage_class: str
    kind: str = "Normal"
    etag: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    modified: datetime = field(default_factory=lambda: datetime.now(UTC))
    ready_at: datetime | None = None
    frozen_again_at: datetime | None = None

    def __post_init__(self) -> None:
        self.etag = self.etag or hashlib.md5(self.data).hexdigest().upper()


@dataclass
class Parts:
    """An open multipart upload."""

    key: str
    storage_class: str
    headers: dict[str, str]
    started: datetime
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Bucket:
    """A bucket and all in it."""

    region: str
    storage_class: str = "Standard"
    things: dict[str, Thing] = field(default_factory=dict)
    uploads: dict[str, Parts] = field(default_factory=dict)
    lifecycle: bytes | None = None


class Refusal(Exception):
    """An error reply."""

    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.status, self.code, self.message = status, code, message or code


@dataclass
class Answer:
    """A reply: status, headers and body."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class OssServer:
    """The server: `endpoint`, `accounts`, `buckets` and the `clock` on which restores take their time."""

    def __init__(self, region: str = "loop-1", *, ignores_conditions: bool = False, copy_limit: int = 1 << 30) -> None:
        self.region, self.ignores_conditions, self.copy_limit = region, ignores_conditions, copy_limit
        self.accounts = {"access": Account("secret")}
        self.buckets: dict[str, Bucket] = {}
        self.clock = ManualClock(datetime.now(UTC))
        self.requests: list[str] = []
        self.lock = threading.RLock()
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self.endpoint = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> OssServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def make_bucket(
        self, name: str | None = None, *, region: str | None = None, storage_class: str = "Standard"
    ) -> str:
        name = name or f"bucket-{uuid.uuid4().hex[:12]}"
        self.buckets[name] = Bucket(region or self.region, storage_class)
        return name

    def answer(self, request: Request) -> Answer:
        """Return the reply to a request; Refusal where it is refused."""
        self.requests.append(f"{request.method} {request.key}?{','.join(request.query)}")
        self._authenticate(request)
        with self.lock:
            if not request.bucket:
                return _buckets(self)
            if not request.key:
                return self._about_bucket(request)
            return self._about_object(request)

    def bucket(self, name: str) -> Bucket:
        if name not in self.buckets:
            raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist.")
        return self.buckets[name]

    def _authenticate(self, request: Request) -> None:
        account = self.accounts.get(access_key(request.headers))
        if account is None:
            raise Refusal(403, "InvalidAccessKeyId")
        if account.version_4_only and not request.headers["authorization"].startswith("OSS4-"):
            raise Refusal(403, "InvalidArgument", "Signature version 1 is not supported for this account.")
        region = self.buckets[request.bucket].region if request.bucket in self.buckets else self.region
        if not authorized(
            request.method, request.bucket, request.key, request.query, request.headers, account.secret, region
        ):
            raise Refusal(403, "SignatureDoesNotMatch")
        if account.token != request.headers.get("x-oss-security-token"):
            raise Refusal(403, "InvalidSecurityToken")
        if account.expires is not None and account.expires <= datetime.now(UTC):
            raise Refusal(403, "SecurityTokenExpired", "The security token you provided has expired.")

    def _about_bucket(self, request: Request) -> Answer:
        query, method = request.query, request.method
        if method == "PUT" and not query:
            found = re.search(rb"<StorageClass>(\w+)</StorageClass>", request.body)
            self.make_bucket(request.bucket, storage_class=found[1].decode() if found else "Standard")
            return Answer()
        bucket = self.bucket(request.bucket)
        if "lifecycle" in query:
            return _lifecycle(bucket, request)
        if method == "POST" and "delete" in query:
            for element in ElementTree.fromstring(request.body).iter("Key"):
                bucket.things.pop(unquote(element.text or ""), None)
            return _xml("DeleteResult", "")
        if method == "DELETE":
            del self.buckets[request.bucket]
            return Answer(204)
        if "uploads" in query:
            return _list_uploads(request, bucket)
        if "acl" in query:
            return _xml("AccessControlPolicy", "<AccessControlList><Grant>private</Grant></AccessControlList>")
        if "location" in query:
            return Answer(body=f"<LocationConstraint>oss-{bucket.region}</LocationConstraint>".encode())
        if "bucketInfo" in query:
            return _bucket_info(request.bucket, bucket)
        return _list_objects(request, bucket)

    def _about_object(self, request: Request) -> Answer:
        bucket, query, method = self.bucket(request.bucket), request.query, request.method
        verbs: dict[tuple[str, str], Callable[[OssServer, Bucket, Request], Answer]] = {
            ("POST", "append"): _append,
            ("POST", "uploads"): _open_upload,
            ("POST", "uploadId"): _complete,
            ("POST", "restore"): _restore,
            ("PUT", "partNumber"): _put_part,
            ("DELETE", "uploadId"): _abort,
            ("GET", "uploadId"): _list_parts,
        }
        for (verb, sub), action in verbs.items():
            if verb == method and sub in query:
                return action(self, bucket, request)
        if method == "PUT":
            return (
                _copy(self, bucket, request) if "x-oss-copy-source" in request.headers else _put(self, bucket, request)
            )
        if method == "DELETE":
            bucket.things.pop(request.key, None)
            return Answer(204)
        if method in ("GET", "HEAD"):
            return _read(self, bucket, request)
        raise Refusal(405, "MethodNotAllowed")


@dataclass
class Request:
    """A request taken apart; names of headers in lower case."""

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def kept_headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.startswith("x-oss-meta-")}


def _put(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    _check_overwrite(server, bucket, request)
    _check_md5(request)
    storage_class = request.headers.get("x-oss-storage-class", bucket.storage_class)
    thing = Thing(request.body, storage_class, headers=request.kept_headers())
    bucket.things[request.key] = thing
    return Answer(headers={"ETag": f'"{thing.etag}"', "x-oss-hash-crc64ecma": str(crc64.xz(thing.data))})


def _check_overwrite(server: OssServer, bucket: Bucket, request: Request) -> None:
    forbidden = request.headers.get("x-oss-forbid-overwrite", "") == "true"
    if forbidden and not server.ignores_conditions and request.key in bucket.things:
        raise Refusal(409, "FileAlreadyExists", "The object you specified already exists and can not be overwritten.")


def _check_md5(request: Request) -> None:
    given = request.headers.get("content-md5")
    if given and base64.b64encode(hashlib.md5(request.body).digest()).decode() != given:
        raise Refusal(400, "InvalidDigest", "The Content-MD5 you specified did not match what was received.")


def _append(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    thing = bucket.things.get(request.key)
    length = len(thing.data) if thing else 0
    if thing is not None and thing.kind != "Appendable":
        raise Refusal(409, "ObjectNotAppendable")
    if int(request.query.get("position", "0")) != length:
        refusal = Refusal(409, "PositionNotEqualToLength")
        raise refusal
    data = (thing.data if thing else b"") + request.body
    storage_class = thing.storage_class if thing else request.headers.get("x-oss-storage-class", bucket.storage_class)
    bucket.things[request.key] = made = Thing(data, storage_class, "Appendable", headers=request.kept_headers())
    return Answer(
        headers={
            "x-oss-next-append-position": str(len(data)),
            "x-oss-hash-crc64ecma": str(crc64.xz(data)),
            "ETag": f'"{made.etag}"',
        }
    )


def _copy(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    _check_overwrite(server, bucket, request)
    source = _copied(server, bucket, request)
    if len(source.data) > server.copy_limit:
        raise Refusal(400, "EntityTooLarge", "Objects above the limit are copied with UploadPartCopy.")
    storage_class = request.headers.get("x-oss-storage-class", bucket.storage_class)
    replaced = request.headers.get("x-oss-metadata-directive", "COPY") == "REPLACE"
    headers = request.kept_headers() if replaced else dict(source.headers)
    bucket.things[request.key] = thing = Thing(source.data, storage_class, headers=headers)
    return _xml("CopyObjectResult", f'<ETag>"{thing.etag}"</ETag><LastModified>{_iso(thing.modified)}</LastModified>')


def _copied(server: OssServer, bucket: Bucket, request: Request) -> Thing:
    name, _, key = unquote(request.headers["x-oss-copy-source"]).lstrip("/").partition("/")
    source_bucket = server.bucket(name)
    if source_bucket.region != bucket.region:
        raise Refusal(403, "AccessDenied", "Target object does not reside in the same data center as source object.")
    thing = source_bucket.things.get(key)
    if thing is None:
        raise Refusal(404, "NoSuchKey")
    _check_thawed(server, thing)
    wanted = request.headers.get("x-oss-copy-source-if-match")
    if wanted is not None and wanted.strip('"') != thing.etag:
        raise Refusal(412, "PreconditionFailed")
    return thing


def _read(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    thing = bucket.things.get(request.key)
    if thing is None:
        raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
    wanted = request.headers.get("if-match")
    if wanted is not None and wanted.strip('"') != thing.etag:
        raise Refusal(412, "PreconditionFailed")
    if request.headers.get("if-none-match", "").strip('"') == thing.etag:
        raise Refusal(304, "NotModified")
    headers = {
        "ETag": f'"{thing.etag}"',
        "Last-Modified": _http(thing.modified),
        "x-oss-object-type": thing.kind,
        "x-oss-storage-class": thing.storage_class,
        "x-oss-hash-crc64ecma": str(crc64.xz(thing.data)),
        "Accept-Ranges": "bytes",
        "Content-Type": "application/octet-stream",
        **thing.headers,
        **_restore_header(server, thing),
    }
    if thing.kind == "Appendable":
        headers["x-oss-next-append-position"] = str(len(thing.data))
    if request.method == "HEAD" or "objectMeta" in request.query:
        return Answer(headers={**headers, "Content-Length": str(len(thing.data))})
    _check_thawed(server, thing)
    return _ranged(thing.data, request, headers)


def _ranged(data: bytes, request: Request, headers: dict[str, str]) -> Answer:
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    if match is None or not any(match.groups()):
        return Answer(headers=headers, body=data)
    if match[1]:
        start, end = int(match[1]), min(int(match[2]) if match[2] else len(data) - 1, len(data) - 1)
        too_far = bool(match[2]) and int(match[2]) >= len(data)
    else:
        start, end, too_far = max(0, len(data) - int(match[2])), len(data) - 1, False
    standard = request.headers.get("x-oss-range-behavior") == "standard"
    if start > end or (too_far and not standard):
        if standard:
            raise Refusal(416, "InvalidRange")
        return Answer(headers=headers, body=data)  # OSS gives all of it for a range that it does not like
    return Answer(206, {**headers, "Content-Range": f"bytes {start}-{end}/{len(data)}"}, data[start : end + 1])


def _check_thawed(server: OssServer, thing: Thing) -> None:
    if thing.storage_class not in RESTORE_SECONDS:
        return
    now = server.clock.real()
    if thing.ready_at is None or now < thing.ready_at or (thing.frozen_again_at and now >= thing.frozen_again_at):
        raise Refusal(403, "InvalidObjectState", "The operation is not valid for the object's storage class")


def _restore_header(server: OssServer, thing: Thing) -> dict[str, str]:
    now = server.clock.real()
    if thing.ready_at is None or (thing.frozen_again_at and now >= thing.frozen_again_at):
        return {}
    if now < thing.ready_at:
        return {"x-oss-restore": 'ongoing-request="true"'}
    assert thing.frozen_again_at is not None
    return {"x-oss-restore": f'ongoing-request="false", expiry-date="{_http(thing.frozen_again_at)}"'}


def _restore(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    thing = bucket.things.get(request.key)
    if thing is None:
        raise Refusal(404, "NoSuchKey")
    if thing.storage_class not in RESTORE_SECONDS:
        raise Refusal(400, "OperationNotSupported", "The operation is not supported for this resource.")
    days = int((re.search(rb"<Days>(\d+)</Days>", request.body) or [b"", b"1"])[1])
    now = server.clock.real()
    live = thing.frozen_again_at is None or now < thing.frozen_again_at
    if thing.ready_at is not None and now < thing.ready_at:
        raise Refusal(409, "RestoreAlreadyInProgress")
    if thing.ready_at is not None and live:
        thing.frozen_again_at = now + timedelta(days=days)
        return Answer(200)
    thing.ready_at = now + timedelta(seconds=RESTORE_SECONDS[thing.storage_class])
    thing.frozen_again_at = thing.ready_at + timedelta(days=days)
    return Answer(202)


def _open_upload(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    upload = uuid.uuid4().hex.upper()
    storage_class = request.headers.get("x-oss-storage-class", bucket.storage_class)
    bucket.uploads[upload] = Parts(request.key, storage_class, request.kept_headers(), datetime.now(UTC))
    inner = f"<Bucket>{request.bucket}</Bucket><Key>{escape(request.key)}</Key><UploadId>{upload}</UploadId>"
    return _xml("InitiateMultipartUploadResult", inner)


def _upload(bucket: Bucket, request: Request) -> Parts:
    upload = bucket.uploads.get(request.query["uploadId"])
    if upload is None or upload.key != request.key:
        raise Refusal(404, "NoSuchUpload", "The specified upload does not exist.")
    return upload


def _put_part(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    upload, data = _upload(bucket, request), request.body
    if "x-oss-copy-source" in request.headers:
        data = _copied(server, bucket, request).data
        if match := re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("x-oss-copy-source-range", "")):
            data = data[int(match[1]) : int(match[2]) + 1]
    else:
        _check_md5(request)
    upload.parts[int(request.query["partNumber"])] = data
    etag = hashlib.md5(data).hexdigest().upper()
    headers = {"ETag": f'"{etag}"', "x-oss-hash-crc64ecma": str(crc64.xz(data))}
    if "x-oss-copy-source" in request.headers:
        answer = _xml("CopyPartResult", f'<LastModified>{_iso(datetime.now(UTC))}</LastModified><ETag>"{etag}"</ETag>')
        answer.headers |= headers
        return answer
    return Answer(headers=headers)


def _list_parts(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    upload = _upload(bucket, request)
    marker = int(request.query.get("part-number-marker") or "0")
    most = int(request.query.get("max-parts") or "1000")
    numbers = sorted(number for number in upload.parts if number > marker)
    listed = "".join(
        f"<Part><PartNumber>{number}</PartNumber><LastModified>{_iso(upload.started)}</LastModified>"
        f'<ETag>"{hashlib.md5(upload.parts[number]).hexdigest().upper()}"</ETag>'
        f"<HashCrc64ecma>{crc64.xz(upload.parts[number])}</HashCrc64ecma><Size>{len(upload.parts[number])}</Size></Part>"
        for number in numbers[:most]
    )
    last = numbers[:most][-1] if numbers else marker
    more = str(len(numbers) > most).lower()
    inner = (
        f"<Bucket>{request.bucket}</Bucket><Key>{escape(upload.key)}</Key><UploadId>{request.query['uploadId']}</UploadId>"
        f"<NextPartNumberMarker>{last}</NextPartNumberMarker><MaxParts>{most}</MaxParts><IsTruncated>{more}</IsTruncated>"
    )
    return _xml("ListPartsResult", inner + listed)


def _complete(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    upload = _upload(bucket, request)
    _check_overwrite(server, bucket, request)
    named = [
        (int(part.findtext("PartNumber", "0")), part.findtext("ETag", "").strip('"'))
        for part in ElementTree.fromstring(request.body).iter("Part")
    ]
    if named != sorted(named):
        raise Refusal(400, "InvalidPartOrder")
    for number, etag in named:
        if number not in upload.parts or hashlib.md5(upload.parts[number]).hexdigest().upper() != etag.upper():
            raise Refusal(400, "InvalidPart")
    datas = [upload.parts[number] for number, _ in named]
    if any(len(data) < SMALLEST_PART for data in datas[:-1]):
        raise Refusal(400, "EntityTooSmall")
    joined = hashlib.md5(b"".join(hashlib.md5(data).digest() for data in datas)).hexdigest().upper()
    thing = Thing(b"".join(datas), upload.storage_class, "Multipart", f"{joined}-{len(datas)}", upload.headers)
    bucket.things[request.key] = thing
    del bucket.uploads[request.query["uploadId"]]
    inner = f'<Bucket>{request.bucket}</Bucket><Key>{escape(request.key)}</Key><ETag>"{thing.etag}"</ETag>'
    answer = _xml("CompleteMultipartUploadResult", inner)
    answer.headers |= {"x-oss-hash-crc64ecma": str(crc64.xz(thing.data)), "ETag": f'"{thing.etag}"'}
    return answer


def _abort(server: OssServer, bucket: Bucket, request: Request) -> Answer:
    _upload(bucket, request)
    del bucket.uploads[request.query["uploadId"]]
    return Answer(204)


def _list_uploads(request: Request, bucket: Bucket) -> Answer:
    prefix = request.query.get("prefix", "")
    listed = "".join(
        f"<Upload><Key>{escape(parts.key)}</Key><UploadId>{upload}</UploadId>"
        f"<Initiated>{_iso(parts.started)}</Initiated></Upload>"
        for upload, parts in sorted(bucket.uploads.items())
        if parts.key.startswith(prefix)
    )
    inner = f"<Bucket>{request.bucket}</Bucket><Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>"
    return _xml("ListMultipartUploadsResult", inner + listed)


def _list_objects(request: Request, bucket: Bucket) -> Answer:
    query = request.query
    second = query.get("list-type") == "2"
    after = (query.get("continuation-token") or query.get("start-after")) if second else query.get("marker")
    prefix, delimiter, most = query.get("prefix", ""), query.get("delimiter", ""), int(query.get("max-keys") or "100")
    coded: Callable[[str], str] = quote if query.get("encoding-type") == "url" else escape
    names, folders, last, more = [], [], "", False
    for key in sorted(bucket.things, key=str.encode):
        rest = key.removeprefix(prefix)
        folder = prefix + rest[: rest.index(delimiter) + len(delimiter)] if delimiter and delimiter in rest else ""
        shown = folder or key
        if not key.startswith(prefix) or (after and shown.encode() <= after.encode()) or folder in folders[-1:]:
            continue
        if len(names) + len(folders) >= min(most, 1000):
            more = True
            break
        (folders if folder else names).append(shown)
        last = shown
    listed = "".join(
        f'<Contents><Key>{coded(key)}</Key><LastModified>{_iso(thing.modified)}</LastModified><ETag>"{thing.etag}"</ETag>'
        f"<Type>{thing.kind}</Type><Size>{len(thing.data)}</Size><StorageClass>{thing.storage_class}</StorageClass>"
        "<Owner><ID>1</ID><DisplayName>1</DisplayName></Owner></Contents>"
        for key, thing in ((key, bucket.things[key]) for key in names)
    )
    listed += "".join(f"<CommonPrefixes><Prefix>{coded(folder)}</Prefix></CommonPrefixes>" for folder in folders)
    following = f"<{'NextContinuationToken' if second else 'NextMarker'}>{coded(last)}" if more else ""
    closing = f"</{'NextContinuationToken' if second else 'NextMarker'}>" if more else ""
    kind = f"<EncodingType>{query['encoding-type']}</EncodingType>" if "encoding-type" in query else ""
    inner = (
        f"<Name>{request.bucket}</Name><Prefix>{coded(prefix)}</Prefix><MaxKeys>{most}</MaxKeys>{kind}"
        f"<Delimiter>{coded(delimiter)}</Delimiter><IsTruncated>{str(more).lower()}</IsTruncated>{following}{closing}"
        f"<KeyCount>{len(names) + len(folders)}</KeyCount>"
    )
    return _xml("ListBucketResult", inner + listed)


def _lifecycle(bucket: Bucket, request: Request) -> Answer:
    if request.method == "PUT":
        bucket.lifecycle = request.body
        return Answer()
    if request.method == "DELETE":
        bucket.lifecycle = None
        return Answer(204)
    if bucket.lifecycle is None:
        raise Refusal(404, "NoSuchLifecycle")
    return Answer(body=bucket.lifecycle)


def _buckets(server: OssServer) -> Answer:
    listed = "".join(
        f"<Bucket><Name>{name}</Name><Location>oss-{bucket.region}</Location><CreationDate>{_iso(datetime.now(UTC))}"
        f"</CreationDate><StorageClass>{bucket.storage_class}</StorageClass><ExtranetEndpoint>{server.endpoint}"
        f"</ExtranetEndpoint><IntranetEndpoint>{server.endpoint}</IntranetEndpoint></Bucket>"
        for name, bucket in sorted(server.buckets.items())
    )
    return _xml(
        "ListAllMyBucketsResult",
        f"<Owner><ID>1</ID><DisplayName>1</DisplayName></Owner><IsTruncated>false</IsTruncated><Buckets>{listed}</Buckets>",
    )


def _bucket_info(name: str, bucket: Bucket) -> Answer:
    return _xml(
        "BucketInfo",
        f"<Bucket><Name>{name}</Name><Location>oss-{bucket.region}</Location><CreationDate>{_iso(datetime.now(UTC))}"
        f"</CreationDate><ExtranetEndpoint>x</ExtranetEndpoint><IntranetEndpoint>x</IntranetEndpoint>"
        f"<StorageClass>{bucket.storage_class}</StorageClass><Owner><ID>1</ID><DisplayName>1</DisplayName></Owner>"
        "<AccessControlList><Grant>private</Grant></AccessControlList><Versioning></Versioning></Bucket>",
    )


def _xml(root: str, inner: str) -> Answer:
    return Answer(
        headers={"Content-Type": "application/xml"},
        body=f'<?xml version="1.0" encoding="UTF-8"?>\n<{root}>{inner}</{root}>'.encode(),
    )


def _iso(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _http(instant: datetime) -> str:
    return instant.strftime("%a, %d %b %Y %H:%M:%S GMT")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients of fault tests hang up on purpose."""


def _handler(server: OssServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            super().setup()

        def _serve(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            parts = urlsplit(self.path)
            bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            body = self._body(headers)
            number = uuid.uuid4().hex[:24].upper()
            try:
                answer = server.answer(Request(self.command, bucket, key, query, headers, body))
            except Refusal as refusal:
                text = (
                    f"<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message>"
                    f"<RequestId>{number}</RequestId><HostId>{bucket}.loopback</HostId></Error>"
                )
                answer = Answer(refusal.status, {"Content-Type": "application/xml"}, text.encode())
                if self.command == "HEAD":
                    answer.headers["Content-Length"] = "0"
            self._reply(answer, number)

        def _body(self, headers: Mapping[str, str]) -> bytes:
            if "chunked" not in headers.get("transfer-encoding", ""):
                return self.rfile.read(int(headers.get("content-length", "0")))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _reply(self, answer: Answer, number: str) -> None:
            self.send_response(answer.status)
            self.send_header("x-oss-request-id", number)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in answer.headers and answer.status not in (204, 304):
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(answer.body)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    return Handler


@contextlib.contextmanager
def oss_server(**options: object) -> Iterator[OssServer]:
    """Run a server while the block lasts."""
    with OssServer(**options) as server:  # type: ignore[arg-type]
        yield server
