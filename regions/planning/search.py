"""The exact search: one forward pass over (instant, place, quanta, replicas), then the way back from any finish.

The pass keeps values only for as long as an arc can reach back, and one small code per state for the way back; so the
whole frontier of cost against finish time comes from it, and any point of it is read out without searching again.
Ties fall to the arc considered first (wait, finish, stop, move; continue before start) and there to the lower index:
the same on every platform. Plain NumPy.

Longer than other modules: the pass and the way back read the same codes, and are only right together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from regions.planning.instance import NEVER, Instance, Ints
from regions.planning.paths import CONTINUE, FINISH, STOP, WAIT, Table, move_code, pack


@dataclass(frozen=True, slots=True)
class _Block:
    """Sites of one stage that gain and start alike, so that one array operation serves them all."""

    stage: int
    sites: Ints
    regions: Ints
    ranks: tuple[Ints, ...]
    """Rows such that within each of these arrays every region stands once."""


def search(instance: Instance) -> Table:
    """Search the whole instance; the horizon is its last instant."""
    return _Pass(instance).run()


class _Pass:
    """The state of one forward pass: rings of values, and the codes written so far."""

    def __init__(self, instance: Instance) -> None:
        self.it = instance
        self.blocks = _blocks(instance)
        self.spans = [int(instance.start_span[block.sites].max(initial=0)) for block in self.blocks]
        slots, masks, regions, work = instance.slots, instance.masks, instance.regions, instance.work
        self.departures = {lag: instance.departures(lag) for lag in np.unique(instance.lag).tolist() if lag >= 0}
        depth = 2 + max(
            (int((np.arange(slots + 1) - late)[late >= 0].max(initial=0)) for late in self.departures.values()),
            default=0,
        )
        self.idle = np.full((min(depth, slots + 1), masks, regions, work + 1), NEVER)
        code = np.uint8 if STOP + instance.sites + 2 * regions <= 255 else np.uint16
        self.idle_code = np.zeros((slots + 1, masks, regions, work + 1), code)
        widths = [int(instance.borders[block.stage + 1] - instance.borders[block.stage]) for block in self.blocks]
        self.running = [
            np.full((span + 2, masks, len(block.sites), width), NEVER)
            for block, span, width in zip(self.blocks, self.spans, widths, strict=True)
        ]
        step = np.uint8 if max(self.spans, default=0) < 254 else np.uint16
        self.run_code = [
            np.zeros((slots + 1, masks, len(block.sites), width), step)
            for block, width in zip(self.blocks, widths, strict=True)
        ]
        ring = max(self.spans, default=0) + 2
        self.finishing = np.full((ring, instance.stages, masks, regions), NEVER)
        self.finish_code = np.full((slots + 1, instance.stages, masks, regions), -1, np.int64)
        self.done = np.full(slots + 1, NEVER)
        self.done_state = np.full(slots + 1, -1, np.int64)
        self.low, self.high = _band(instance)
        self.moves = _moves(instance)

    def run(self) -> Table:
        """Walk the instants once."""
        it = self.it
        self._begin()
        for instant in range(it.slots + 1):
            self._arrive(instant)
            self._stop(instant)
            self._move(instant)
            idle = self.idle[instant % len(self.idle)]
            ends = idle[:, :, it.work].ravel()
            state = int(ends.argmin())
            self.done[instant], self.done_state[instant] = ends[state], state if ends[state] < NEVER else -1
            if instant < it.slots:
                for number, block in enumerate(self.blocks):
                    self._start(number, block, instant)
                    self._continue(number, block, instant)
        place = np.zeros((it.sites, 2), np.int64)
        for number, block in enumerate(self.blocks):
            place[block.sites] = [(number, row) for row in range(len(block.sites))]
        return Table(it, self.done, self.done_state, self.idle_code, tuple(self.run_code), self.finish_code, place)

    def _begin(self) -> None:
        it = self.it
        if it.first_site < 0:
            self.idle[0, it.first_mask, it.first_region, it.first_work] = 0
            return
        for number, block in enumerate(self.blocks):
            row = np.flatnonzero(block.sites == it.first_site)
            if len(row):
                self.running[number][0, it.first_mask, row[0], it.first_work - it.borders[block.stage]] = 0

    def _arrive(self, instant: int) -> None:
        """Waiting, and the last quantum of a stage done: what reaches the idle states of this instant by itself."""
        it, now = self.it, instant % len(self.idle)
        idle = self.idle[now]
        if instant:
            before = self.idle[(instant - 1) % len(self.idle)]
            idle[:] = NEVER
            for stage, (low, high) in self._stages(instant):
                cost = (it.held[stage, :, instant] - it.held[stage, :, instant - 1])[:, None, None]
                lies = np.arange(low, high) > it.borders[stage]
                cost = cost + it.stay[stage, None, :, None, instant - 1] * lies
                np.minimum(before[:, :, low:high] + cost, NEVER, out=idle[:, :, low:high])
                self.idle_code[instant, :, :, low:high][idle[:, :, low:high] < NEVER] = WAIT
        ended = self.finishing[instant % len(self.finishing)]
        at = idle[:, :, it.borders[1:]].transpose(2, 0, 1)
        better = ended < at
        if better.any():
            stages, masks, regions = np.nonzero(better)
            idle[masks, regions, it.borders[stages + 1]] = ended[better]
            self.idle_code[instant, masks, regions, it.borders[stages + 1]] = FINISH
            self.finish_code[instant][~better] = -1
        ended[:] = NEVER

    def _stop(self, instant: int) -> None:
        it, idle, code = self.it, self.idle[instant % len(self.idle)], self.idle_code[instant]
        for number, block in enumerate(self.blocks):
            base = int(it.borders[block.stage])
            low, high = self._slice(instant, block.stage)
            if low >= high:
                continue
            values = self.running[number][instant % len(self.running[number])][:, :, low - base : high - base]
            for rows in block.ranks:
                found = values[:, rows]
                if it.stop_penalty is not None and it.first_site in block.sites[rows]:
                    found = (
                        found + np.where(block.sites[rows] == it.first_site, it.stop_penalty[instant], 0)[None, :, None]
                    )
                regions = block.regions[rows]
                better = found < idle[:, regions, low:high]
                if better.any():
                    idle[:, regions, low:high] = np.where(better, found, idle[:, regions, low:high])
                    codes = (STOP + block.sites[rows])[None, :, None].astype(code.dtype)
                    code[:, regions, low:high] = np.where(better, codes, code[:, regions, low:high])

    def _move(self, instant: int) -> None:
        it, idle, code = self.it, self.idle[instant % len(self.idle)], self.idle_code[instant]
        for move in self.moves:
            low, high = self._slice(instant, move.stage)
            border = int(it.borders[move.stage])
            low, high = (max(low, border + 1), high) if move.begun else (low, min(high, border + 1))
            begin = int(self.departures[move.lag][instant])
            if low >= high or begin < 0:
                continue
            before = self.idle[begin % len(self.idle)][move.masks][:, move.sources, low:high]
            cost = move.fees
            if move.begun:
                lying = it.stayed[move.stage, move.sources]
                cost = cost + lying[:, instant] - lying[:, begin]
            held = it.held[move.stage, move.masks, instant] - it.held[move.stage, move.masks, begin]
            found = before + cost[None, :, None]
            least = (found[:, 0] if len(move.sources) == 1 else found.min(axis=1)) + held[:, None]
            kept = idle[move.arrivals, move.target, low:high]
            better = least < kept
            if better.any():
                which = found.argmin(axis=1)
                idle[move.arrivals, move.target, low:high] = np.where(better, least, kept)
                codes = move_code(it, move.sources, move.with_inputs)[which].astype(code.dtype)
                kept_code = code[move.arrivals, move.target, low:high]
                code[move.arrivals, move.target, low:high] = np.where(better, codes, kept_code)

    def _start(self, number: int, block: _Block, instant: int) -> None:
        it, stage = self.it, block.stage
        span = int(it.start_span[block.sites[0], instant])
        low, high = self._slice(instant, stage)
        if not span or low >= high:
            return
        begin, end, base = instant, instant + span, int(it.borders[stage])
        fixed, rent = it.start_fixed[block.sites, instant], it.start_rent[block.sites, instant]
        lie = it.stayed[stage, block.regions, end] - it.stayed[stage, block.regions, begin]
        held = it.held[stage, :, end] - it.held[stage, :, begin]
        held = np.where(it.ready[stage][:, block.regions], held[:, None] + lie[None, :], NEVER)
        values = self.idle[instant % len(self.idle)][:, block.regions, low:high] + held[:, :, None]
        if values.min() >= NEVER:
            return
        gain = int(it.start_gain[block.sites[0], instant])
        self._advance(number, block, (instant, end), values, (low - base, gain), (fixed, rent), CONTINUE + span)

    def _continue(self, number: int, block: _Block, instant: int) -> None:
        it, stage = self.it, block.stage
        low, high = self._slice(instant, stage)
        ring = self.running[number]
        now = ring[instant % len(ring)]
        if low < high:
            base = int(it.borders[stage])
            held = (it.held[stage, :, instant + 1] - it.held[stage, :, instant])[:, None]
            held = held + it.stay[stage, block.regions, instant][None, :]
            values = now[:, :, low - base : high - base] + held[:, :, None]
            if values.min() < NEVER:
                rent, gain = it.rent[block.sites, instant], int(it.gain[block.sites[0], instant])
                costs = (np.zeros_like(rent), rent)
                self._advance(number, block, (instant, instant + 1), values, (low - base, gain), costs, CONTINUE)
        now[:] = NEVER

    def _advance(
        self,
        number: int,
        block: _Block,
        slots: tuple[int, int],
        values: Ints,
        work: tuple[int, int],
        costs: tuple[Ints, Ints],
        code: int,
    ) -> None:
        """Carry running values forward by `gain`; what reaches the stage's border pays only for the part it needs."""
        (begin, end), (first, gain), (fixed, rent) = slots, work, costs
        ring = self.running[number]
        width = ring.shape[-1]
        stays = max(0, min(values.shape[-1], width - gain - first))
        if stays:
            found = values[:, :, :stays] + (fixed + rent)[None, :, None]
            target = ring[end % len(ring)][:, :, first + gain : first + gain + stays]
            better = found < target
            if better.any():
                np.copyto(target, found, where=better)
                codes = self.run_code[number][end][:, :, first + gain : first + gain + stays]
                codes[better] = code
        if gain and stays < values.shape[-1]:
            need = width - first - np.arange(stays, values.shape[-1])
            part = -(-np.where(rent < NEVER, rent, 0)[:, None] * need[None, :] // gain) + fixed[:, None]
            part[rent >= NEVER] = NEVER
            self._finish(block, (begin, end), values[:, :, stays:] + part[None], first + stays, code - CONTINUE)

    def _finish(self, block: _Block, slots: tuple[int, int], found: Ints, first: int, span: int) -> None:
        it, stage, (_, end) = self.it, block.stage, slots
        cost = found.min(axis=2)
        if cost.min() >= NEVER:
            return
        level = found.argmin(axis=2)
        target = self.finishing[end % len(self.finishing)][stage]
        for mask, row in np.argwhere(cost < NEVER).tolist():
            region, site = int(block.regions[row]), int(block.sites[row])
            after = it.mask_after(stage, region, int(mask))
            if cost[mask, row] < target[after, region]:
                target[after, region] = cost[mask, row]
                work = int(it.borders[stage]) + first + int(level[mask, row])
                self.finish_code[end, stage, after, region] = pack(it, int(mask), site, work, span)

    def _slice(self, instant: int, stage: int) -> tuple[int, int]:
        """Return the quanta of a stage that can have been done by now and still lead to the end in time."""
        it = self.it
        return max(int(it.borders[stage]), int(self.low[instant])), min(
            int(it.borders[stage + 1]), int(self.high[instant]) + 1
        )

    def _stages(self, instant: int) -> list[tuple[int, tuple[int, int]]]:
        return [(stage, cut) for stage in range(self.it.stages) if (cut := self._slice(instant, stage))[0] < cut[1]]


@dataclass(frozen=True, slots=True)
class _Move:
    """All moves of a stage into one region that take equally long and start from these masks."""

    stage: int
    begun: bool
    with_inputs: bool
    target: int
    lag: int
    sources: Ints
    fees: Ints
    masks: Ints
    arrivals: Ints


def _moves(it: Instance) -> list[_Move]:
    every, moves = np.arange(it.masks), []
    for stage, begun, with_inputs, target in product(range(it.stages), (0, 1), (0, 1), range(it.regions)):
        masks = every[it.ready[stage, :, target] != bool(with_inputs)]
        if not len(masks) or (with_inputs and it.replica_bit[target] < 0):
            continue
        arrivals = masks | (1 << int(it.replica_bit[target])) if with_inputs else masks
        lags = it.lag[stage, begun, with_inputs, :, target]
        for lag in np.unique(lags[lags >= 0]).tolist():
            sources = np.flatnonzero(lags == lag)
            fees = it.fee[stage, begun, with_inputs, sources, target]
            moves.append(_Move(stage, bool(begun), bool(with_inputs), target, lag, sources, fees, masks, arrivals))
    return moves


def _blocks(it: Instance) -> list[_Block]:
    alike: dict[tuple[int, bytes, bytes, bytes], list[int]] = {}
    for site in range(it.sites):
        rows = (it.gain[site].tobytes(), it.start_span[site].tobytes(), it.start_gain[site].tobytes())
        alike.setdefault((int(it.site_stage[site]), *rows), []).append(site)
    return [_block(it, key[0], np.array(sites)) for key, sites in alike.items()]


def _block(it: Instance, stage: int, sites: Ints) -> _Block:
    regions = it.site_region[sites]
    seen: dict[int, int] = {}
    rank = []
    for region in regions.tolist():
        rank.append(seen.get(region, 0))
        seen[region] = rank[-1] + 1
    ranks = tuple(np.flatnonzero(np.array(rank) == number) for number in range(max(rank) + 1))
    return _Block(stage, sites, regions, ranks)


def _band(it: Instance) -> tuple[Ints, Ints]:
    """Bound the quanta done at each instant: from above by what can be done, from below by what must be."""
    most = it.gain.max(axis=0, initial=0)
    sums = np.concatenate([[0], np.cumsum(most)])
    return np.maximum(it.first_work, it.work - (sums[-1] - sums)), np.minimum(it.work, it.first_work + sums)
