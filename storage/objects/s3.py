"""Opening s3:// stores: credentials, region and endpoint as AWS's own client stack (botocore) finds them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from regions.clock import SystemClock
from regions.errors import OutsideError
from storage.objects.client import BucketClient, Site, bucket_of
from storage.objects.credentials import Credential, CredentialSource
from storage.objects.dialects import S3
from storage.objects.wire import WireStore

_VARIABLES = {
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint_url": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
}


def open_s3(
    url: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    profile: str | None = None,
    credentials: CredentialSource | None = None,
    timeout: float = 60.0,
) -> WireStore:
    """Return the store of a bucket. What is not given comes from the variables and files that AWS's tools read."""
    chain = None
    if credentials is None or not endpoint or not region:
        chain = _Chain(profile)
        region = region or chain.setting("region") or "us-east-1"
        endpoint = endpoint or chain.setting("endpoint_url")
    source = credentials or (chain.source(url) if chain else None)
    assert source is not None
    bucket, prefix = bucket_of(url)
    site = _site(bucket, prefix, region or "us-east-1", endpoint)
    return WireStore(BucketClient(url, site, S3, source, SystemClock(), timeout))


def _site(bucket: str, prefix: str, region: str, endpoint: str | None) -> Site:
    if endpoint:
        return Site(bucket, prefix, endpoint, region, path_style=True)
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    if "." in bucket:  # no certificate covers a dotted name below the service's host
        return Site(bucket, prefix, f"https://s3.{region}.{domain}", region, path_style=True)
    return Site(bucket, prefix, f"https://{bucket}.s3.{region}.{domain}", region, path_style=False)


class _Chain:
    """botocore's session: variables, shared files, processes, single sign-on, roles of machines and pods."""

    def __init__(self, profile: str | None) -> None:
        import botocore.exceptions
        import botocore.session

        self._foreign = botocore.exceptions.BotoCoreError
        self._session = botocore.session.Session(profile=profile)
        self._one_at_a_time = threading.Lock()  # a session that reads its files shows other threads half of them

    def setting(self, name: str) -> str | None:
        variables = {
            "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
            "endpoint_url": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        }
        for variable in variables[name]:
            if os.environ.get(variable):
                return os.environ[variable]
        try:
            config: Mapping[str, object] = self._session.get_scoped_config()
        except self._foreign as error:
            raise OutsideError(f"cannot read the AWS configuration: {error}", kind="credentials") from error
        nested = config.get("s3")
        found = (nested.get(name) if isinstance(nested, Mapping) else None) or config.get(name)
        return str(found) if found else None

    def source(self, url: str) -> CredentialSource:
        """Return a source that lets botocore renew what is about to run out, and finds what appears only later."""

        def current() -> Credential:
            try:
                with self._one_at_a_time:
                    found = self._session.get_credentials()
                    frozen = found.get_frozen_credentials() if found else None
            except self._foreign as error:
                raise OutsideError(f"cannot get credentials for {url}: {error}", kind="credentials") from error
            if frozen is None or not frozen.access_key:
                raise OutsideError(
                    f"no credentials for {url}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file in "
                    "AWS_SHARED_CREDENTIALS_FILE, or give this machine a role",
                    kind="credentials",
                    store=url,
                )
            return Credential(frozen.access_key, frozen.secret_key, frozen.token)

        return current
