"""Endpoints and credentials of OSS as its own tools understand them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from regions.clock import ManualClock
from regions.errors import InputError, OutsideError
from storage.objects import open_store
from storage.objects.client import Site
from storage.objects.oss import site_of
from storage.objects.oss_credentials import OssCredentials

CLOCK = ManualClock(datetime(2026, 12, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("endpoint", "region", "expected"),
    [
        (None, "cn-hangzhou", ("https://b.oss-cn-hangzhou.aliyuncs.com", "cn-hangzhou", False)),
        ("oss-cn-beijing.aliyuncs.com", None, ("https://b.oss-cn-beijing.aliyuncs.com", "cn-beijing", False)),
        (
            "https://oss-cn-beijing-internal.aliyuncs.com",
            None,
            ("https://b.oss-cn-beijing-internal.aliyuncs.com", "cn-beijing", False),
        ),
        ("https://data.example.com", "cn-hangzhou", ("https://data.example.com", "cn-hangzhou", False)),
        ("http://127.0.0.1:9000", "loop-1", ("http://127.0.0.1:9000", "loop-1", True)),
    ],
)
def test_endpoints(endpoint: str | None, region: str | None, expected: tuple[str, str, bool]) -> None:
    url, told, path_style = expected
    assert site_of("oss://b/some/prefix/", endpoint, region) == Site("b", "some/prefix/", url, told, path_style)


def test_a_region_that_nobody_told_is_asked_for() -> None:
    with pytest.raises(InputError, match="OSS_REGION"):
        site_of("oss://b", "https://data.example.com", None)


@pytest.mark.parametrize("url", ["http://x/y", "s3://", "file://host/x", "nonsense", "oss://b/p?q=1", "memory://"])
def test_urls_that_name_no_store(url: str) -> None:
    with pytest.raises(InputError):
        open_store(url)


def test_variables_come_before_files_and_files_are_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    environ = {"ALIBABA_CLOUD_CREDENTIALS_FILE": str(file), "HOME": str(tmp_path)}
    source = OssCredentials(CLOCK, environ=environ)
    with pytest.raises(OutsideError, match="OSS_ACCESS_KEY_ID"):
        source()
    file.write_text("[default]\ntype = access_key\naccess_key_id = one\naccess_key_secret = s1\n")
    assert (source().access, source().token) == ("one", None)
    file.write_text("[default]\naccess_key_id = two\naccess_key_secret = s2\nsecurity_token = t\n")
    os.utime(file, ns=(1, 1))
    assert (source().access, source().token) == ("two", "t")
    environ |= {"OSS_ACCESS_KEY_ID": "three", "OSS_ACCESS_KEY_SECRET": "s3"}
    assert source().access == "three"


def test_ossutils_own_file_gives_keys_region_and_endpoint(tmp_path: Path) -> None:
    (tmp_path / ".ossutilconfig").write_text(
        "[Credentials]\nlanguage=EN\naccessKeyID=ak\naccessKeySecret=sk\nregion=cn-hangzhou\nendpoint=e\n"
    )
    source = OssCredentials(CLOCK, environ={"HOME": str(tmp_path)})
    assert source().access == "ak"
    assert (source.setting("region"), source.setting("endpoint")) == ("cn-hangzhou", "e")


def test_a_file_that_cannot_be_read_is_named_without_its_contents(tmp_path: Path) -> None:
    (tmp_path / ".ossutilconfig").write_text("accessKeySecret=verysecret\n")
    with pytest.raises(OutsideError, match="ossutilconfig") as caught:
        OssCredentials(CLOCK, environ={"HOME": str(tmp_path)})()
    assert "verysecret" not in str(caught.value)
