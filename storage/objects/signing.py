"""Signature version 4, in the two dialects of S3 (AWS4-HMAC-SHA256) and OSS (OSS4-HMAC-SHA256).

Both sign method, path, sorted query and headers with a key derived from date, region and service; the day's key is
kept. Bodies are not hashed for the signature: their integrity is the checksum's task, their secrecy TLS's.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from storage.objects.credentials import Credential

UNSIGNED = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True, slots=True)
class Scheme:
    """What tells the two dialects apart."""

    algorithm: str
    prefix: str
    """Of the store's own header names."""
    key_prefix: str
    service: str
    terminator: str
    signs_host: bool
    bare_empty_values: bool
    """In the canonical query an empty value is left out together with its '='."""


AWS4 = Scheme("AWS4-HMAC-SHA256", "x-amz-", "AWS4", "s3", "aws4_request", signs_host=True, bare_empty_values=False)
OSS4 = Scheme(
    "OSS4-HMAC-SHA256", "x-oss-", "aliyun_v4", "oss", "aliyun_v4_request", signs_host=False, bare_empty_values=True
)


def query_text(query: Mapping[str, str], *, bare_empty_values: bool = False) -> str:
    """Return the query sorted and encoded as both dialects want it, on the wire as well as signed."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    return "&".join(name if not value and bare_empty_values else f"{name}={value}" for name, value in pairs)


class Signer:
    """Signs requests of one scheme for one region. Safe for threads."""

    def __init__(self, scheme: Scheme, region: str) -> None:
        self._scheme, self._region = scheme, region
        self._kept: tuple[tuple[str, str], bytes] = (("", ""), b"")

    def sign(
        self,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        *,
        host: str,
        credential: Credential,
        now: datetime,
    ) -> dict[str, str]:
        """Return `headers` (names in lower case) with date, token and authorization added.

        `path` and `query` are encoded already; `path` is the one to be signed, which OSS always begins with the bucket.
        """
        scheme = self._scheme
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        signed = {
            **headers,
            scheme.prefix + "date": stamp,
            scheme.prefix + "content-sha256": UNSIGNED,
        }
        if credential.token:
            signed[scheme.prefix + "security-token"] = credential.token
        covered = {
            name: value
            for name, value in signed.items()
            if name.startswith(scheme.prefix) or name in ("content-md5", "content-type")
        }
        if scheme.signs_host:
            covered["host"] = host
        names = sorted(covered)
        lines = "".join(f"{name}:{covered[name]}\n" for name in names)
        listed = ";".join(names) if scheme.signs_host else ""
        request = f"{method}\n{path}\n{query}\n{lines}\n{listed}\n{UNSIGNED}"
        scope = f"{stamp[:8]}/{self._region}/{scheme.service}/{scheme.terminator}"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"{scheme.algorithm}\n{stamp}\n{scope}\n{digest}"
        signature = hmac.digest(self._key(credential.secret, stamp[:8]), text.encode(), "sha256").hex()
        also = f",SignedHeaders={listed}" if scheme.signs_host else ""
        signed["authorization"] = (
            f"{scheme.algorithm} Credential={credential.access}/{scope}{also},Signature={signature}"
        )
        return signed

    def _key(self, secret: str, day: str) -> bytes:
        wanted = (secret, day)
        kept, key = self._kept
        if kept == wanted:
            return key
        key = (self._scheme.key_prefix + secret).encode()
        for step in (day, self._region, self._scheme.service, self._scheme.terminator):
            key = hmac.digest(key, step.encode(), "sha256")
        self._kept = (wanted, key)
        return key
