"""Signatures against the clouds' own signers as oracles, and credentials that never show."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from storage.objects.credentials import Credential
from storage.objects.signing import AWS4, OSS4, Signer, query_text
from tests.support.oss_signatures import authorized

NOW = datetime(2026, 12, 1, 8, 30, 5, tzinfo=UTC)
TEXT = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)


@given(query=st.dictionaries(TEXT, TEXT, max_size=3), token=st.none() | st.just("session"))
def test_s3_as_botocore_signs(query: dict[str, str], token: str | None) -> None:
    credential = Credential("AKID", "s3cr3t", token)
    text = query_text(query)
    signed = Signer(AWS4, "eu-west-1").sign(
        "PUT", "/b/k%20x", text, {"x-amz-storage-class": "GLACIER"}, host="h:1", credential=credential, now=NOW
    )
    theirs = AWSRequest("PUT", f"http://h:1/b/k%20x?{text}", headers={
        name: value for name, value in signed.items() if name not in ("authorization",)
    })  # fmt: skip
    theirs.context["timestamp"] = "20261201T083005Z"
    signer = S3SigV4Auth(Credentials("AKID", "s3cr3t", token), "s3", "eu-west-1")
    canonical = signer.canonical_request(theirs)
    string = signer.string_to_sign(theirs, canonical)
    assert signed["authorization"].endswith(signer.signature(string, theirs))


@given(query=st.dictionaries(TEXT, st.just("") | TEXT, max_size=3))
def test_oss_as_an_independent_verifier_reads_it(query: dict[str, str]) -> None:
    signed = Signer(OSS4, "cn-hangzhou").sign(
        "GET", "/b/k", query_text(query, bare_empty_values=True), {"x-oss-range-behavior": "standard"},
        host="h", credential=Credential("ak", "sk"), now=NOW,
    )  # fmt: skip
    assert authorized("GET", "b", "k", query, signed, "sk", "cn-hangzhou")
    assert not authorized("GET", "b", "k", query, signed, "other", "cn-hangzhou")
    assert not authorized("GET", "b", "k2", query, signed, "sk", "cn-hangzhou")


def test_days_and_secrets_change_the_key() -> None:
    signer = Signer(AWS4, "r")
    seen = set()
    for secret in ("a", "b"):
        for day in (1, 2):
            now = NOW.replace(day=day)
            signed = signer.sign("GET", "/", "", {}, host="h", credential=Credential("k", secret), now=now)
            seen.add(re.search("Signature=(.*)", signed["authorization"])[1])  # type: ignore[index]
    assert len(seen) == 4


def test_a_credential_does_not_show_its_secrets() -> None:
    text = repr(Credential("AKID", "s3cr3t", "t0ken"))
    assert "AKID" in text and "s3cr3t" not in text and "t0ken" not in text
