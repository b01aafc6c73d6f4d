"""P26: moved between a folder and an S3 site a checkpoint stays one; a copy without its record is kept a while."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from storage.checkpoints import Record, content_of, newest, restore, verify
from storage.checkpoints.collecting import GRACE, collect
from storage.handoff import Document, Item, handoff
from storage.objects import Store, open_store
from tests.storage.checkpoints.saves import commit_step
from tests.support.s3_server import moto_server, s3_store


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as endpoint:
        yield endpoint


def move(record: Record, source: Store, target: Store) -> None:
    handoff([Item(*item) for item in record.items()], [Document(*record.document())], source, target)


def test_moved_through_the_product_it_is_committed_loadable_and_kept(tmp_path: Path, endpoint: str) -> None:
    folder, bucket, again = (
        open_store((tmp_path / "a").as_uri()),
        s3_store(endpoint),
        open_store((tmp_path / "b").as_uri()),
    )
    record = commit_step(folder, tmp_path, 10)
    for source, target in ((folder, bucket), (bucket, again)):
        move(record, source, target)
        assert newest(target, "r", "s") == (record, ())
        assert verify(target, record) == ()
        assert collect(target, now=datetime.now(UTC) + 30 * GRACE).deleted == ()
    restore(again, record, tmp_path / "back")
    assert content_of(tmp_path / "back") == record.content


def test_copied_by_hand_without_its_record_it_is_reported_and_kept_for_the_grace(tmp_path: Path, endpoint: str) -> None:
    folder, bucket = open_store((tmp_path / "a").as_uri()), s3_store(endpoint)
    record = commit_step(folder, tmp_path, 10)
    for key, _, _ in record.items():
        bucket.put(key, folder.get(key))

    assert newest(bucket, "r", "s")[0] is None
    soon = collect(bucket, now=datetime.now(UTC) + GRACE - timedelta(minutes=5))
    assert soon.deleted == () and {stat.key for stat in soon.uncommitted} == {key for key, _, _ in record.items()}
    bucket.put(*record.document())
    assert collect(bucket, now=datetime.now(UTC) + 30 * GRACE).deleted == ()
    assert newest(bucket, "r", "s")[0] == record
    bucket.delete(record.key)
    late = collect(bucket, now=datetime.now(UTC) + GRACE + timedelta(minutes=5))
    assert set(late.deleted) == {key for key, _, _ in record.items()}
