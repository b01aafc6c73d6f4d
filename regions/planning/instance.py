"""The planning problem as whole numbers: what the search solves and what the test oracle solves too.

Time is cut into slots (not all of one length) by instants, work into quanta. A run is `idle` in a region (its
checkpoint lies there, nothing is rented) or `running` on a site. A site is one way to rent for one stage: region,
offer, market, width. Money is in whole units far below a cent; a cost is that of a whole arc. See decisions/0201.

    start     idle in r  at t  ->  running on i      at t + start_span[i, t]   startup paid, the rest of the span works
    continue  running i  at t  ->  running on i      at t + 1
    finish    either of them, cut where the stage's last quantum is done       ->  idle, next stage, at the slot's end
    stop      running i  at t  ->  idle in region(i) at t                      free (penalised for the current leg)
    wait      idle in r  at t  ->  idle in r         at t + 1
    move      idle in r  at t  ->  idle in q         at the first instant by which the bytes are there

A move copies the inputs if q does not hold them yet; a state therefore knows which regions hold new replicas (a mask).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

KEPT, MADE_HERE, NONE = 0, 1, 2
"""What a beginning stage does to replicas: it reads the same; what was just made here; other data."""

NEVER = np.int64(1) << np.int64(60)
"""The cost of what cannot be; no real cost may come near it."""


@dataclass(frozen=True)
class Instance:
    """One run on a grid. Shapes: T slots, I sites, R regions, K stages, D regions that can hold a new replica."""

    instants: Ints
    """[T+1] seconds since the epoch, strictly rising."""
    borders: Ints
    """[K+1] quanta done at the stages' borders; the run is done at the last."""
    site_region: Ints
    site_stage: Ints
    rent: Ints
    """[I, T] cost of working through slot t; NEVER where the site is closed."""
    gain: Ints
    """[I, T] quanta done by working through slot t."""
    start_span: Ints
    """[I, T] slots until a start at t has become `running`; 0 where it cannot start."""
    start_gain: Ints
    start_fixed: Ints
    """[I, T] cost of a start that does not depend on how much of the span is worked (the startup's rent)."""
    start_rent: Ints
    """[I, T] cost of working through the rest of the start's span."""
    lag: Ints
    """[K, 2, 2, R, R] seconds a move takes: stage begun or not, with inputs or not; negative: not allowed."""
    fee: Ints
    """[K, 2, 2, R, R] cost of a move, likewise."""
    stay: Ints
    """[K, R, T] cost of the checkpoint lying in r through slot t, once the stage has begun or a leg runs."""
    lacks: Flags
    """[K, R] the stage's inputs do not lie in r unless a new replica does."""
    replica_bit: Ints
    """[R] which bit of the mask says that r holds a new replica; -1: it never needs one."""
    keep: Ints
    """[K, D, T] cost of the new replica of bit d lying there through slot t."""
    replicas_kept: Ints
    """[K] which replicas the stage can still use once it begins: KEPT, MADE_HERE or NONE."""
    first_region: Ints
    """The regions the run may begin in; one, unless its data lies nowhere in particular."""
    first_work: int
    first_mask: int
    first_site: int = -1
    """The site that is running now (its cost of going on holds no startup), or -1."""
    stop_penalty: Ints | None = None
    """[T+1] search-only cost of stopping `first_site` before its planned end: what keeps plans from flapping."""

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return len(self.instants) - 1

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.replica_bit)

    @property
    def sites(self) -> int:
        """How many sites there are."""
        return len(self.site_region)

    @property
    def stages(self) -> int:
        """How many stages there are."""
        return len(self.borders) - 1

    @property
    def masks(self) -> int:
        """How many replica states there are."""
        return 1 << int(self.keep.shape[1])

    @property
    def work(self) -> int:
        """Quanta of the whole run."""
        return int(self.borders[-1])

    @cached_property
    def held(self) -> Ints:
        """[K, masks, T+1] cost of all new replicas of a mask from the first instant to another."""
        bits = (np.arange(self.masks)[:, None] >> np.arange(self.keep.shape[1])[None, :]) & 1
        return _running_sum(np.einsum("md,kdt->kmt", bits, self.keep))

    @cached_property
    def stayed(self) -> Ints:
        """[K, R, T+1] cost of the checkpoint lying in a region from the first instant to another."""
        return _running_sum(self.stay)

    @cached_property
    def ready(self) -> Flags:
        """[K, masks, R] the region holds the stage's inputs, so a leg may start there."""
        bits = self.replica_bit[None, :]
        held = (bits >= 0) & ((np.arange(self.masks)[:, None] >> np.maximum(bits, 0)) & 1 == 1)
        return np.asarray(~self.lacks[:, None, :] | held[None])

    def departures(self, lag: int) -> Ints:
        """Return, for each instant, the last instant from which a move of `lag` seconds gets there then (-1: none)."""
        last = np.searchsorted(self.instants, self.instants - lag, side="right") - 1
        last[1:][last[1:] == last[:-1]] = -1
        return last

    def mask_after(self, stage: int, region: int, mask: int) -> int:
        """Return what replicas count once `stage` (its last quantum) was done in `region`."""
        if stage + 1 == self.stages or self.replicas_kept[stage + 1] == KEPT:
            return mask
        bit = int(self.replica_bit[region])
        return 1 << bit if bit >= 0 and self.replicas_kept[stage + 1] == MADE_HERE else 0


def _running_sum(values: Ints) -> Ints:
    return np.concatenate([np.zeros((*values.shape[:-1], 1), np.int64), np.cumsum(values, axis=-1)], axis=-1)
