"""P14: credentials that end before the transfer does: renewed ones are used at once, a static one is named."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from regions.errors import OutsideError
from storage.handoff import Document, handoff
from storage.objects import open_store
from storage.objects.credentials import Credential, CredentialSource
from storage.objects.memory import MemoryStore
from storage.objects.wrapping import Wrapper
from tests.storage.test_handoff import fill
from tests.support.oss_server import Account, OssServer, oss_server


class Counted(Wrapper):
    """Counts what is written and lets the account's keys end after some writes."""

    writes = 0

    def put_many(self, objects, **options):  # type: ignore[no-untyped-def]
        self.writes += len(objects)
        return super().put_many(objects, **options)


def opened(server: OssServer, url: str, source: CredentialSource) -> Counted:
    return Counted(open_store(url, endpoint=server.endpoint, region="loop-1", credentials=source))


def test_a_source_that_renews_carries_the_transfer_through() -> None:
    with oss_server() as server:
        numbers = itertools.count(1)
        lifetime = timedelta(seconds=0.15)
        current: list[Credential] = []

        def renew() -> Credential:
            now = datetime.now(UTC)
            if not current or (current[-1].expires or now) - lifetime / 2 < now:
                name, expires = f"key-{next(numbers)}", now + lifetime
                server.accounts[name] = Account("secret", token=f"token-{name}", expires=expires)
                current.append(Credential(name, "secret", f"token-{name}", expires))
            return current[-1]

        target = opened(server, f"oss://{server.make_bucket()}/site", renew)
        source = MemoryStore()
        items = fill(source, [300_000] * 20)
        begun = datetime.now(UTC)
        while True:  # longer than several lifetimes; every pass is the same transfer to another folder
            receipt = handoff(items, [Document("record", b"r")], source, target)
            assert receipt.complete
            if len(current) >= 4:
                break
            assert datetime.now(UTC) - begun < timedelta(seconds=30)
            for item in items:
                target.delete(item.key)
        assert len({credential.access for credential in current}) >= 4


def test_keys_replaced_in_the_middle_are_noticed_and_nothing_is_sent_twice() -> None:
    with oss_server() as server:
        server.accounts["second"] = Account("other")
        answers = itertools.chain(
            [Credential("access", "secret")] * 30, itertools.repeat(Credential("second", "other"))
        )
        target = opened(server, f"oss://{server.make_bucket()}/site", lambda: next(answers))
        source = MemoryStore()
        items = fill(source, [50_000] * 40)
        receipt = handoff(items, (), source, target)
        assert receipt.sent_items == 40 and target.writes == 40


def test_a_static_token_that_ends_is_named_and_the_next_attempt_goes_on() -> None:
    with oss_server() as server:
        expires = datetime.now(UTC) + timedelta(hours=1)
        server.accounts["static"] = Account("secret", token="t", expires=expires)
        static = Credential("static", "secret", "t", expires)
        url = f"oss://{server.make_bucket()}/site"
        target = opened(server, url, lambda: static)
        source = MemoryStore()
        items = fill(source, [200_000] * 20)
        handoff(items[:12], (), source, target)
        server.accounts["static"].expires = datetime.now(UTC) - timedelta(seconds=1)
        with pytest.raises(OutsideError, match="expire") as caught:
            handoff(items, [Document("record", b"r")], source, target)
        assert caught.value.kind == "credentials-expired"
        assert expires.isoformat() in str(caught.value) and "secret" not in str(caught.value)

        fresh = opened(server, url, lambda: Credential("access", "secret"))
        receipt = handoff(items, [Document("record", b"r")], source, fresh)
        assert (receipt.present_items, receipt.sent_items) == (12, 8)
