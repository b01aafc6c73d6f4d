"""The rows of an instance that belong to one site: what it costs and gains in each slot, and what a start does."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from regions.planning.instance import NEVER, Flags, Ints
from regions.planning.sites import Site
from regions.planning.world import World

UNIT = 10**9
"""Whole units of the search per unit of currency: so small that roundings cannot add up to a millionth."""
EFFORT = 1000
"""Units a move or a start costs in the search alone: of equal plans the one with fewer legs is found."""


class SiteRows:
    """The arrays that have a row per site."""

    def __init__(self, world: World, instants: Ints, step: int, quantum: tuple[Fraction, ...], hopeful: bool) -> None:
        slots, anchor = len(instants) - 1, world.start - world.start % step
        shape = (len(world.sites), slots)
        self.rent = np.full(shape, NEVER)
        self.gain, self.start_span, self.start_gain = (np.zeros(shape, np.int64) for _ in range(3))
        self.start_fixed, self.start_rent = np.full(shape, NEVER), np.full(shape, NEVER)
        for row, site in enumerate(world.sites):
            self.rent[row] = rents(site, instants)
            pace = _Pace(site.speed / quantum[site.stage], int(instants[-1]) - anchor)
            if hopeful:
                self._hopeful_starts(row, site, instants, pace, anchor)
                continue
            load = world.loads[site.stage]
            every = world.request.checkpoint_of(load.stage).every.total_seconds()
            worth = math.ceil(min(Fraction(every), load.remaining / site.speed))
            self._starts(row, site, instants, pace, anchor, worth)

    def _starts(self, row: int, site: Site, instants: Ints, pace: _Pace, anchor: int, worth: int) -> None:
        # Nothing counts that would have been begun before the first instant, which need not lie on the step.
        done = np.maximum(pace.floor(instants - anchor), pace.ceiling(instants[:1] - anchor))
        self.gain[row] = np.diff(done)
        working = instants[:-1] - anchor + site.startup
        base = pace.ceiling(working)
        ready = np.maximum(pace.when(base + 1), instants[:-1] - anchor + site.minimum)
        shut = np.concatenate([[0], np.cumsum(self.rent[row] >= NEVER)])
        paid = np.concatenate([[0], np.cumsum(np.where(self.rent[row] < NEVER, self.rent[row], 0))])
        begin = np.arange(len(instants) - 1)
        last, possible = _open_until(instants - anchor, ready, shut)
        # A leg that does not live from one checkpoint to the next is not worth a start, unless there is no time for it.
        later, worthy = _open_until(instants - anchor, np.maximum(ready, working + worth), shut)
        last, possible = np.where(worthy, later, last), possible | worthy
        self.start_span[row] = np.where(possible, last - begin, 0)
        self.start_gain[row] = np.where(possible, done[last] - base, 0)
        # The rent until work begins, or for the least that is billed, is due whatever is done after it.
        due = np.minimum(instants[last], instants[:-1] + max(site.startup, site.minimum))
        fixed = _paid_until(due, instants, paid, self.rent[row]) - paid[begin]
        self.start_fixed[row] = np.where(possible, fixed + EFFORT, NEVER)
        self.start_rent[row] = np.where(possible, paid[last] - paid[begin] - fixed, NEVER)

    def _hopeful_starts(self, row: int, site: Site, instants: Ints, pace: _Pace, anchor: int) -> None:
        """Round for a bound: a leg gains ceiling(work until its end) minus floor(work until its first step)."""
        done = pace.ceiling(instants - anchor)
        self.gain[row] = np.diff(np.concatenate([pace.floor(instants[:1] - anchor), done[1:]]))
        shut = np.concatenate([[0], np.cumsum(self.rent[row] >= NEVER)])
        paid = np.concatenate([[0], np.cumsum(np.where(self.rent[row] < NEVER, self.rent[row], 0))])
        begin, working = np.arange(len(instants) - 1), instants[:-1] - anchor + site.startup
        last, possible = _open_until(instants - anchor, np.maximum(working, instants[:-1] - anchor + 1), shut)
        fixed = _paid_until(instants[:-1] + site.startup, instants, paid, self.rent[row]) - paid[begin]
        self.start_span[row] = np.where(possible, last - begin, 0)
        self.start_gain[row] = np.where(possible, done[last] - pace.floor(working), 0)
        self.start_fixed[row] = np.where(possible, fixed, NEVER)
        self.start_rent[row] = np.where(possible, paid[last] - paid[begin] - fixed, NEVER)


def _open_until(seconds: Ints, wanted: Ints, shut: Ints) -> tuple[Ints, Flags]:
    """Return the first instant at or after the wanted seconds, and whether every slot until then is open."""
    end = np.searchsorted(seconds, wanted)
    last = np.minimum(end, len(seconds) - 1)
    return last, (end < len(seconds)) & (shut[last] == shut[:-1])


def _paid_until(due: Ints, instants: Ints, paid: Ints, rent: Ints) -> Ints:
    slot = np.minimum(np.searchsorted(instants, due, side="right") - 1, len(rent) - 1)
    part = np.where(rent[slot] < NEVER, rent[slot], 0) * (due - instants[slot]) // np.diff(instants)[slot]
    return np.asarray(paid[slot] + part)


def rents(site: Site, instants: Ints) -> Ints:
    """Return the units a site costs in each slot; NEVER where it is closed."""
    row, length = np.full(len(instants) - 1, NEVER), np.diff(instants)
    for rent in site.rents:
        first, last = np.searchsorted(instants, rent.start), np.searchsorted(instants, rent.end, side="right") - 1
        hourly = round(rent.price * UNIT)
        # An owned machine is never run for the sake of a negative power price.
        row[first:last] = (max(0, hourly) * length[first:last] + 1800) // 3600
    return row


class _Pace:
    """Quanta per second as a ratio of whole numbers small enough that products with seconds fit 64 bits."""

    def __init__(self, speed: Fraction, horizon: int) -> None:
        room = (1 << 61) // max(1, horizon + 86_400)
        if max(speed.numerator, speed.denominator) > room:
            # Rounded down: the grid may be a little pessimistic, never the reverse.
            denominator = max(1, int(room / max(1, math.ceil(speed))))
            speed = Fraction(math.floor(speed * denominator), denominator)
        self.up, self.down = speed.numerator, speed.denominator

    def floor(self, seconds: Ints) -> Ints:
        return np.asarray(seconds * self.up // self.down)

    def ceiling(self, seconds: Ints) -> Ints:
        return np.asarray(-(-seconds * self.up // self.down))

    def when(self, quanta: Ints) -> Ints:
        """Return the first whole second by which that many are done."""
        return np.asarray(-(-quanta * self.down // self.up) if self.up else np.full_like(quanta, 1 << 60))
