"""Verifying OSS's two signatures, written from the clients' wire shapes and independent of the product's signer."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote

_SUB_RESOURCES = frozenset(
    [
        "acl",
        "append",
        "bucketInfo",
        "cors",
        "delete",
        "lifecycle",
        "location",
        "logging",
        "objectMeta",
        "partNumber",
        "policy",
        "position",
        "qos",
        "referer",
        "restore",
        "security-token",
        "stat",
        "symlink",
        "tagging",
        "uploadId",
        "uploads",
        "versionId",
        "versioning",
        "versions",
        "website",
        "x-oss-process",
        "response-content-type",
        "response-content-language",
        "response-expires",
        "response-cache-control",
        "response-content-disposition",
        "response-content-encoding",
        "continuation-token",
    ]
)


def authorized(
    method: str, bucket: str, key: str, query: Mapping[str, str], headers: Mapping[str, str], secret: str, region: str
) -> bool:
    """Tell whether the request (names of headers in lower case) is signed with the secret, by either version."""
    authorization = headers.get("authorization", "")
    if authorization.startswith("OSS4-HMAC-SHA256 "):
        return _version_4(method, bucket, key, query, headers, secret, region, authorization)
    if authorization.startswith("OSS "):
        return _version_1(method, bucket, key, query, headers, secret, authorization)
    return False


def access_key(headers: Mapping[str, str]) -> str:
    """Return the access key that a request names, or ''."""
    authorization = headers.get("authorization", "")
    if authorization.startswith("OSS4-HMAC-SHA256 "):
        return _fields(authorization).get("Credential", "").split("/")[0]
    return authorization.removeprefix("OSS ").partition(":")[0]


def _version_1(
    method: str, bucket: str, key: str, query: Mapping[str, str], headers: Mapping[str, str], secret: str, given: str
) -> bool:
    own = sorted((name, value) for name, value in headers.items() if name.startswith("x-oss-"))
    resource = f"/{bucket}/{key}" if bucket else "/"
    sub = sorted((name, value) for name, value in query.items() if name in _SUB_RESOURCES or name.startswith("x-oss-"))
    if sub:
        resource += "?" + "&".join(f"{name}={value}" if value else name for name, value in sub)
    text = "\n".join(
        [
            method,
            headers.get("content-md5", ""),
            headers.get("content-type", ""),
            headers.get("x-oss-date") or headers.get("date", ""),
            "".join(f"{name}:{value}\n" for name, value in own) + resource,
        ]
    )
    signature = base64.b64encode(hmac.digest(secret.encode(), text.encode(), "sha1")).decode()
    return hmac.compare_digest(given.partition(":")[2], signature)


def _version_4(
    method: str,
    bucket: str,
    key: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    secret: str,
    region: str,
    given: str,
) -> bool:
    fields = _fields(given)
    day, named_region, product, end = (fields.get("Credential", "").split("/") + [""] * 5)[1:5]
    if (named_region, product, end) != (region, "oss", "aliyun_v4_request"):
        return False
    also = [name for name in fields.get("AdditionalHeaders", "").split(";") if name]
    covered = sorted(
        name for name in headers if name.startswith("x-oss-") or name in ("content-type", "content-md5", *also)
    )
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    path = f"/{bucket}/{key}" if bucket else "/"
    request = "\n".join(
        [
            method,
            quote(path, safe="/-_.~"),
            "&".join(f"{name}={value}" if value else name for name, value in pairs),
            "".join(f"{name}:{headers[name].strip()}\n" for name in covered),
            ";".join(sorted(also)),
            headers.get("x-oss-content-sha256", ""),
        ]
    )
    scope = f"{day}/{region}/oss/aliyun_v4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"OSS4-HMAC-SHA256\n{headers.get('x-oss-date', '')}\n{scope}\n{digest}"
    secret_key = f"aliyun_v4{secret}".encode()
    for step in scope.split("/"):
        secret_key = hmac.digest(secret_key, step.encode(), "sha256")
    return hmac.compare_digest(fields.get("Signature", ""), hmac.digest(secret_key, text.encode(), "sha256").hex())


def _fields(authorization: str) -> dict[str, str]:
    listed = authorization.partition(" ")[2].split(",")
    return {name.strip(): value for name, _, value in (pair.partition("=") for pair in listed)}
