"""The picture of prices: what an hour costs, region under region, so that one sees the night move around the planet.

One lane per region on one UTC axis; under each curve stands the hour on that region's own wall. Time in a window is
shaded and named, the darker the cheaper against the lane's dearest hour. `now` is a line through all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from matplotlib import dates as mdates
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regions.offers import SERIES, UNKNOWN, Curve, Span

INK = "#1f2933"
PALE = "#66717e"
NIGHT = "#33508f"
UNSURE = "#d9822b"
PRICE = "#20396d"
_WIDTH = 11.0  # inches
_LETTERS = 150  # of the smallest text, across a lane


@dataclass(frozen=True, slots=True)
class PriceLane:
    """One region's curve, and what to write beside it."""

    region: str
    offer: str
    zone: str
    currency: str
    curve: Curve


def draw_prices(lanes: Sequence[PriceLane], market: str, now: datetime | None = None) -> Figure:
    """Return the figure of lanes over one span of time; `now` is marked where it lies within."""
    rcParams["svg.hashsalt"] = "nightrelay"
    figure = Figure(figsize=(_WIDTH, 1.1 + 1.45 * len(lanes)), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(lanes), 1, sharex=True, squeeze=False)[:, 0]
    for axis, lane in zip(axes, lanes, strict=True):
        _lane(axis, lane)
        if now is not None and lane.curve and lane.curve[0].start <= now <= lane.curve[-1].end:
            axis.axvline(_x(now), color=UNSURE, linewidth=1.2)
            if axis is axes[0]:
                axis.annotate(" now", (_x(now), 0.62), xycoords=("data", "axes fraction"), fontsize=8, color=UNSURE,
                              fontweight="bold")  # fmt: skip
    locator = mdates.AutoDateLocator(tz=UTC, minticks=5, maxticks=12)
    axes[-1].xaxis.set_major_locator(locator)
    axes[-1].xaxis.set_major_formatter(mdates.ConciseDateFormatter(locator, tz=UTC))
    axes[-1].xaxis.get_offset_text().set_fontsize(8)
    axes[-1].set_xlabel("UTC; under each curve: the clock on that region's wall", fontsize=8, color=PALE)
    kind = market.replace("_", " ")
    figure.suptitle(f"Price per instance and hour, {kind}", fontsize=11, color=INK, x=0.01, ha="left")
    return figure


def _lane(axis: Axes, lane: PriceLane) -> None:
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(labelsize=8, colors=INK)
    axis.set_title(f"{lane.region}  ·  {lane.offer}", fontsize=9, color=INK, loc="left", pad=4)
    axis.set_title(f"{lane.zone}, {lane.currency}", fontsize=8, color=PALE, loc="right", pad=4)
    if not lane.curve:
        return
    prices = [float(span.price) for span in lane.curve]
    top, bottom = max([*prices, 0.0]) or 1.0, min([*prices, 0.0])
    axis.set_ylim(bottom * 1.25 - 0.28 * top, 1.3 * top)
    axis.set_yticks(sorted({0.0, min(prices), max(prices)}))
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}")
    edges = [_x(span.start) for span in lane.curve] + [_x(lane.curve[-1].end)]
    axis.set_xlim(edges[0], edges[-1])
    for span in lane.curve:
        _shade(axis, span, max(prices), edges[-1] - edges[0])
    axis.stairs(prices, edges, color=PRICE, linewidth=1.6, baseline=None)
    axis.axhline(0, color=PALE, linewidth=0.6)
    _wall_clock(axis, lane)


def _shade(axis: Axes, span: Span, dearest: float, width: float) -> None:
    """Shade a window by how much cheaper it is than the dearest hour, and write its name where it fits."""
    start, end = _x(span.start), _x(span.end)
    unsure = span.basis == UNKNOWN
    if not unsure and span.window is None:
        return
    saving = 1 - float(span.price) / dearest if dearest > 0 else 0.0
    shade = min(max(saving, 0.0), 1.0)
    if unsure or shade > 0.01:
        axis.axvspan(start, end, color=UNSURE if unsure else NIGHT, alpha=0.18 if unsure else 0.06 + 0.22 * shade, lw=0)
    name = "day not published" if unsure else span.window or ""
    if name != SERIES and len(name) < _LETTERS * (end - start) / width:
        axis.annotate(name, ((start + end) / 2, 0.97), xycoords=("data", "axes fraction"), ha="center", va="top",
                      fontsize=7, color=INK if shade > 0.01 or unsure else PALE)  # fmt: skip


def _wall_clock(axis: Axes, lane: PriceLane) -> None:
    """Write the hours of the region's own clock under its curve, with the weekday at its midnights."""
    start, end = lane.curve[0].start, lane.curve[-1].end
    days = (end - start) / timedelta(days=1)
    every = next(hours for hours in (1, 2, 3, 4, 6, 12, 24) if days * 24 / hours <= 18 or hours == 24)
    instant = start.replace(minute=0, second=0, microsecond=0)
    # Quarter hours, since midnight lies on one in every zone; each wall hour is written where it begins.
    written = None
    while instant < end:
        local = instant.astimezone(ZoneInfo(lane.zone))
        if local.minute == 0 and local.hour % every == 0 and (local.date(), local.hour, local.fold) != written:
            written = (local.date(), local.hour, local.fold)
            text = f"{local:%a}" if local.hour == 0 else f"{local:%H}"
            if instant > start and (every < 24 or days <= 32 or local.day == 1):
                axis.annotate(text, (_x(instant), 0.03), xycoords=("data", "axes fraction"), ha="center", fontsize=7,
                              color=PALE, fontweight="bold" if local.hour == 0 else "normal")  # fmt: skip
        instant += timedelta(minutes=15)


def _x(instant: datetime) -> float:
    """Return an instant as matplotlib's axis counts it: days."""
    return float(mdates.date2num(instant))
