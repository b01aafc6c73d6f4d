"""What is left of each stage, and the bytes that tie it to places."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from regions.errors import Fault, RequestError
from regions.planning.problem import Situation
from regions.planning.request import RunRequest, Stage


@dataclass(frozen=True, slots=True)
class Load:
    """A stage with what is left of it and what it has to carry. Bytes throughout."""

    stage: Stage
    total: Fraction
    remaining: Fraction
    checkpoint: int
    """Carried by a move once the stage has begun."""
    inherited: int
    """Carried by a move before it has begun: the checkpoint it starts from."""
    luggage: int
    """Carried by every move: what earlier stages made and only later ones read."""
    missing: Mapping[str, int]
    """Bytes of its inputs that a region lacks (nothing said: none)."""
    made_before: bool
    """It reads what a stage still to be done makes."""


def loads_of(request: RunRequest, situation: Situation, regions: Collection[str], home: str | None) -> tuple[Load, ...]:
    """Return the stages still to be done, each with the bytes that tie it to places."""
    done = {stage.id for stage in request.stages if situation.progress.get(stage.id, 0) >= stage.work.amount}
    waiting = [stage for stage in request.stages if stage.id not in done]
    loads = []
    for number, stage in enumerate(waiting):
        sources = sorted(set(stage.inputs.values()))
        sizes = {source: _size(request, situation, source) for source in sources}
        yet_to_come = {source for source in sources if source.partition(".")[0] in {s.id for s in waiting[:number]}}
        missing = {}
        for region in regions:
            lying = {s: sizes[s] if s in yet_to_come else _lying(situation, s, sizes[s], region, home) for s in sources}
            lacks = sum(sizes[s] if s in yet_to_come else sizes[s] - lying[s] for s in sources)
            if lacks > 0:
                missing[region] = lacks
        read_later = {source for later in waiting[number + 1 :] for source in later.inputs.values()} - set(sources)
        made_already = {f"{s.id}.{o.name}" for s in waiting[:number] for o in s.outputs}
        loads.append(
            Load(
                stage,
                stage.work.amount,
                stage.work.amount - situation.progress.get(stage.id, Fraction(0)),
                _checkpoint_bytes(request, stage),
                _checkpoint_bytes(request, request.stage(stage.starts_from)) if stage.starts_from else 0,
                sum(_size(request, situation, source) for source in read_later & made_already),
                missing,
                bool(yet_to_come),
            )
        )
    return tuple(loads)


def _checkpoint_bytes(request: RunRequest, stage: Stage) -> int:
    """Return the stated size, else 12 bytes a parameter: weights and an optimizer's two moments in single precision."""
    stated = request.checkpoint_of(stage).size
    return stated if stated is not None else 12 * (request.model.parameters or 0)


def _size(request: RunRequest, situation: Situation, source: str) -> int:
    if source in situation.sizes:
        return situation.sizes[source]
    if source != "dataset":
        stage, _, name = source.partition(".")
        return next((output.size or 0 for output in request.stage(stage).outputs if output.name == name), 0)
    if request.dataset is None or request.dataset.size is None:
        fault = Fault(request.id, None, "dataset.size", "nothing", "a size, or a manifest that tells it")
        raise RequestError(f"run {request.id} cannot be planned: the size of its dataset is not known:", [fault])
    return request.dataset.size


def _lying(situation: Situation, source: str, size: int, region: str, home: str | None) -> int:
    """Return how many bytes of a source lie in a region: as told, else all of it at home (everywhere without one)."""
    if source in situation.replicas:
        return min(size, situation.replicas[source].get(region, 0))
    return size if home is None or region == home else 0


def least_time(loads: tuple[Load, ...], situation: Situation) -> timedelta:
    """Return how long the work takes on the slowest accelerators asked for, at their least width."""
    seconds = Fraction(0)
    for load in loads:
        stage = load.stage
        rates = [situation.rates.get((stage.id, name), speed.rate) for name, speed in stage.accelerators.items()]
        width = stage.width.min if stage.width is not None else 1
        seconds += load.remaining / (min(rates) * width * (stage.fraction or 1)) * 3600
    return timedelta(seconds=math.ceil(seconds))
