"""The life of checkpoints against a plain model: begin, put, crash, commit, fence, retain, copy, collect.

The model is a dictionary of what has been committed. Whatever happens in whatever order: exactly the model's
checkpoints are listed, each of them restores to the bytes it was made of, and nothing half done is ever seen.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from regions.clock import ManualClock
from regions.errors import ConflictError, FencedError, StoreUnavailable
from storage.checkpoints import Record, commit, content_of, newest, records, restore, survey
from storage.checkpoints.collecting import GRACE, collect
from storage.checkpoints.retention import Keep, retire, tag, tags
from storage.handoff import Document, Item, handoff
from storage.objects import Store
from storage.objects.memory import MemoryStore
from storage.objects.wrapping import Wrapper
from tests.storage.checkpoints.saves import save

EXAMPLES = 2000 if os.environ.get("NIGHTRELAY_SOAK") else 60
STEPS, TERMS = st.integers(1, 6), st.integers(1, 3)


class Crashing(Wrapper):
    """Stops for good at the n-th write, before or after it took effect."""

    def __init__(self, inner: Store, after: int, effect: bool) -> None:
        super().__init__(inner)
        self._left, self._effect = after, effect

    def _write(self, act):
        self._left -= 1
        if self._left >= 0:
            return act()
        if self._left == -1 and self._effect:
            act()
        raise StoreUnavailable("crashed")

    def put(self, key, body, **more):
        return self._write(lambda: super(Crashing, self).put(key, body, **more))

    def put_many(self, objects, **more):
        for each in objects:
            self._write(lambda each=each: super(Crashing, self).put_many([each], **more))
        return tuple(self.head(key) for key, _ in objects)

    def delete(self, key, **more):
        return self._write(lambda: super(Crashing, self).delete(key, **more))


class Checkpoints(RuleBasedStateMachine):
    """Two regions, one run, saves that share parts."""

    saves = Bundle("saves")

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="checkpoint-machine-"))
        self.clock = ManualClock(datetime(2026, 12, 1, tzinfo=UTC))
        self.stores = [MemoryStore(f"machine-{uuid.uuid4().hex}", self.clock) for _ in range(2)]
        self.model: list[dict[tuple[int, int], Record]] = [{}, {}]
        self.contents: dict[tuple[int, str], tuple[Path, str]] = {}
        self.term = 1

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(target=saves, step=STEPS, term=TERMS, note=st.sampled_from("ab"))
    def train(self, step: int, term: int, note: str) -> tuple[int, int, str]:
        if (step, note) not in self.contents:
            path = save(self.folder / note, step, weights=50, note=note)
            self.contents[step, note] = (path, content_of(path) or "")
        return step, term, note

    def _commit(self, store: Store, where: int, made: tuple[int, int, str]) -> None:
        step, term, note = made
        path, content = self.contents[step, note]

        def fence() -> None:
            if term < self.term:
                raise FencedError(f"term {self.term} stands")

        about = {"run": "r", "stage": "s", "step": step, "term": term, "samples": step}
        standing = self.model[where].get((step, term))
        try:
            record = commit(store, path, at=self.clock.now(), fence=fence, clock=self.clock, **about)
        except FencedError:
            assert term < self.term
        except ConflictError:
            assert standing is not None and standing.content != content
        else:
            assert term >= self.term
            assert standing is None or standing == record
            self.model[where][step, term] = record

    @rule(made=saves, where=st.integers(0, 1))
    def save_and_commit(self, made: tuple[int, int, str], where: int) -> None:
        self._commit(self.stores[where], where, made)

    @rule(made=saves, where=st.integers(0, 1), after=st.integers(0, 6), effect=st.booleans())
    def crash_while_committing(self, made: tuple[int, int, str], where: int, after: int, effect: bool) -> None:
        try:
            self._commit(Crashing(self.stores[where], after, effect), where, made)
        except StoreUnavailable:
            # Only the record decides: if it was written before the crash, the checkpoint is there, else it is not.
            step, term, _ = made
            found = {(each.step, each.term): each for each in records(self.stores[where], "r", "s")}
            if (step, term) in found:
                self.model[where][step, term] = found[step, term]

    @rule()
    def fence(self) -> None:
        self.term = min(self.term + 1, 3)

    @rule(where=st.integers(0, 1), crash=st.none() | st.integers(0, 4))
    def copy_the_newest(self, where: int, crash: int | None) -> None:
        if not self.model[where]:
            return
        record = self.model[where][max(self.model[where])]
        other = 1 - where
        target = self.stores[other] if crash is None else Crashing(self.stores[other], crash, False)
        try:
            items = [Item(*item) for item in record.items()]
            handoff(items, [Document(*record.document())], self.stores[where], target, streams=1, clock=self.clock)
        except StoreUnavailable:
            return
        except ConflictError:
            assert (record.step, record.term) in self.model[other]
            return
        self.model[other][record.step, record.term] = record

    @rule(where=st.integers(0, 1), last=st.integers(1, 3))
    def retain(self, where: int, last: int) -> None:
        store = self.stores[where]
        before = records(store, "r", "s")
        gone = retire(store, before, Keep(last=last))
        tagged = set(tags(store, "r", "s").values())
        for record in gone:
            assert record.digest not in tagged and record not in before[:last]
            del self.model[where][record.step, record.term]

    @rule(where=st.integers(0, 1))
    def tag_the_oldest(self, where: int) -> None:
        if self.model[where]:
            tag(self.stores[where], self.model[where][min(self.model[where])], "kept")

    @rule(where=st.integers(0, 1))
    def collect_rubbish(self, where: int) -> None:
        collect(self.stores[where], now=self.clock.real())

    @rule(hours=st.integers(1, 30))
    def let_time_pass(self, hours: int) -> None:
        self.clock.advance(timedelta(hours=hours).total_seconds())

    @rule()
    def collect_all_after_the_grace(self) -> None:
        self.clock.advance(GRACE.total_seconds() + 60)
        for store, model in zip(self.stores, self.model, strict=True):
            collect(store, now=self.clock.real())
            left = {stat.key for stat in store.list("chunks/")}
            assert left == {chunk.key for record in model.values() for chunk in record.chunks}
            assert survey(store, "r", "s").passed == ()

    @invariant()
    def exactly_the_committed_ones_are_seen_and_whole(self) -> None:
        for store, model in zip(getattr(self, "stores", ()), getattr(self, "model", ()), strict=True):
            found = records(store, "r", "s")
            assert found == tuple(model[key] for key in sorted(model, reverse=True))
            if found:
                assert newest(store, "r", "s")[0] == found[0]
                back = self.folder / uuid.uuid4().hex
                restore(store, found[-1], back)
                assert content_of(back) == found[-1].content
                shutil.rmtree(back)


TestCheckpoints = Checkpoints.TestCase
TestCheckpoints.settings = settings(max_examples=EXAMPLES, stateful_step_count=25, deadline=None)
