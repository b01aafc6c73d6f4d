"""Signed requests to one bucket: addressing, credentials of the moment, and errors in our own words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from regions.clock import Clock
from regions.errors import OutsideError, TransientError
from storage.objects import replies
from storage.objects.credentials import Credential, CredentialSource
from storage.objects.dialects import Dialect
from storage.objects.http import HttpPool, Reply
from storage.objects.interface import Body, check_key
from storage.objects.signing import Signer, query_text

_KEY_SAFE = "/-_.~"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a bucket is. `path_style` puts its name into the path; else the endpoint's host stands for it."""

    bucket: str
    prefix: str
    endpoint: str
    region: str
    path_style: bool


class BucketClient:
    """Sends requests about one bucket. Safe for threads."""

    def __init__(
        self, url: str, site: Site, dialect: Dialect, credentials: CredentialSource, clock: Clock, timeout: float
    ) -> None:
        self.url, self.site, self.dialect = url, site, dialect
        self._credentials, self._clock = credentials, clock
        self._pool = HttpPool(site.endpoint, timeout=timeout)
        self._signer = Signer(dialect.scheme, site.region)

    def send(
        self,
        method: str,
        key: str | None,
        action: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body = b"",
        into: memoryview | None = None,
        allowed: Collection[int] = (),
    ) -> Reply:
        """Return the reply to a request about `key` (None: the bucket itself).

        A status that is no success and not `allowed` is raised as our error, `action` telling what was tried. A
        request refused for expired credentials is sent once more if the source has new ones by then.
        """
        name = quote(self.site.prefix + check_key(key), safe=_KEY_SAFE) if key is not None else ""
        credential = self._credential()
        for last in (False, True):
            reply = self._exchange(method, name, query or {}, headers or {}, body, into, credential)
            if reply.status < 300 or reply.status in allowed:
                return reply
            if method == "HEAD" and reply.status == 403:  # without a body it cannot tell why: ask a way that can
                asked = {**(headers or {}), "range": "bytes=0-0"}
                reply = self._exchange("GET", name, query or {}, asked, b"", None, credential)
            error = replies.error_of(reply, self.dialect, self.url, key or "", action)
            if error.kind != "credentials-expired":
                raise error
            credential, used = self._credential(), credential
            if last or credential == used:
                expiry = f" (they were to expire at {used.expires.isoformat()})" if used.expires else ""
                raise OutsideError(f"{error.message}{expiry}", kind=error.kind, **error.context)
        raise AssertionError("unreachable")

    def check_late_error(self, reply: Reply, key: str, action: str) -> None:
        """Raise for a reply that began with 200 before the server failed."""
        if b"<Error>" in reply.body:
            late = Reply(500, reply.headers, reply.body)
            raise replies.error_of(late, self.dialect, self.url, key, action)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    def _exchange(
        self,
        method: str,
        name: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: Body,
        into: memoryview | None,
        credential: Credential,
    ) -> Reply:
        scheme, bucket = self.dialect.scheme, quote(self.site.bucket)
        text = query_text(query, bare_empty_values=scheme.bare_empty_values)
        sent_path = f"/{bucket}/{name}" if self.site.path_style else f"/{name}"
        signed = self._signer.sign(
            method,
            # OSS signs the bucket as part of the path even where its name is in the host.
            sent_path if scheme.signs_host else f"/{bucket}/{name}",
            text,
            headers,
            host=self._pool.host,
            credential=credential,
            now=self._clock.real(),
        )
        return self._pool.request(method, f"{sent_path}?{text}" if text else sent_path, signed, body, into)

    def _credential(self) -> Credential:
        credential = self._credentials()
        if credential.expires is not None and credential.expires <= self._clock.real():
            raise OutsideError(
                f"the credentials for {self.url} expired at {credential.expires.isoformat()} and their source has no "
                "newer ones; renew them, then try again: what was finished is not done again",
                kind="credentials-expired",
                store=self.url,
                expired=credential.expires.isoformat(),
            )
        return credential


def bucket_of(url: str) -> tuple[str, str]:
    """Return bucket and key prefix ('' or ending in '/') of a URL such as s3://bucket/prefix."""
    parts = urlsplit(url)
    prefix = parts.path.strip("/")
    return parts.netloc, f"{prefix}/" if prefix else ""


def damaged(store: str, key: str, got: str, expected: str) -> TransientError:
    """Return the error for bytes that changed on the way: worth another try."""
    return TransientError(
        f"{store}/{key} was damaged on the way: its checksum is {got}, expected {expected}",
        kind="damaged-on-the-way",
        store=store,
        key=key,
    )
