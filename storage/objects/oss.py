"""Opening oss:// stores: public, internal and custom-domain endpoints, version 4 signatures throughout."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from regions.clock import SystemClock
from regions.errors import InputError
from storage.objects.client import BucketClient, Site, bucket_of
from storage.objects.credentials import CredentialSource
from storage.objects.dialects import OSS
from storage.objects.oss_credentials import OssCredentials
from storage.objects.wire import WireStore

_CLOUD = re.compile(r"^oss-(?P<region>[a-z0-9-]+?)(-internal)?\.aliyuncs\.com$")


def open_oss(
    url: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    credentials: CredentialSource | None = None,
    timeout: float = 60.0,
) -> WireStore:
    """Return the store of a bucket. InputError unless its region can be told: the signature is made for it."""
    clock = SystemClock()
    chain = OssCredentials(clock, profile)
    site = site_of(url, endpoint or chain.setting("endpoint"), region or chain.setting("region"))
    return WireStore(BucketClient(url, site, OSS, credentials or chain, clock, timeout))


def site_of(url: str, endpoint: str | None, region: str | None) -> Site:
    """Return where a bucket is. Without an endpoint: the region's public one.

    `oss-<region>[-internal].aliyuncs.com` takes the bucket as its first label; an address or localhost takes it in the
    path; any other host is a custom domain (CNAME) that stands for the bucket.
    """
    bucket, prefix = bucket_of(url)
    if endpoint and "//" not in endpoint:
        endpoint = f"https://{endpoint}"
    host = urlsplit(endpoint).hostname or "" if endpoint else f"oss-{region}.aliyuncs.com"
    in_cloud = _CLOUD.match(host)
    region = region or (in_cloud["region"] if in_cloud else None)
    if not region:
        raise InputError(
            f"{url}: the region is not known, expected a region id such as cn-hangzhou: give `region`, set OSS_REGION, "
            "or use an endpoint that names it",
            kind="region-unknown",
        )
    if endpoint is None:
        return Site(bucket, prefix, f"https://{bucket}.oss-{region}.aliyuncs.com", region, path_style=False)
    if in_cloud:
        scheme, _, rest = endpoint.partition("://")
        return Site(bucket, prefix, f"{scheme}://{bucket}.{rest}", region, path_style=False)
    return Site(bucket, prefix, endpoint, region, path_style=_is_local(host))


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
