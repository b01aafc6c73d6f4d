"""The picture of a relay: legs as bars over each region's price curve, so that one sees at a glance why it moves.

One lane per region, all on one UTC axis: windows are shaded and named, the price is a step line. A leg is a bar below
its region's curve, and the filled area above it, price times time, is what it costs. Lanes stand in the order in which
they are first used. Drawn by matplotlib without a display; the same values always give the same SVG.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from matplotlib import dates as mdates
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK = "#1f2933"
PALE = "#66717e"
NIGHT = "#dfe6f5"
PRICE = "#3d5a98"
_STRIP = 0.3
"""Height of the strip in which legs lie, as a part of the highest price."""
_LETTERS = 150
"""How many letters of a leg's label fit across a lane."""
_LAST = datetime.max.replace(tzinfo=UTC)
COLORS = ("#d9822b", "#2a9d8f", "#b5487e", "#6a51a3", "#4c7f33", "#a33b2a")


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of a price curve: `price` per hour in the picture's currency; `window` names the tariff window."""

    start: datetime
    end: datetime
    price: float
    window: str | None


@dataclass(frozen=True, slots=True)
class Lane:
    """One region: its name, zone and price curve over the picture's span."""

    region: str
    zone: str
    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Bar:
    """One leg on its region's lane."""

    label: str
    region: str
    start: datetime
    end: datetime


def draw_relay(
    title: str,
    lanes: Sequence[Lane],
    bars: Sequence[Bar],
    currency: str,
    marks: Mapping[str, datetime] | None = None,
) -> Figure:
    """Return the figure. `marks` are instants drawn over all lanes, such as now and the deadline."""
    rcParams["svg.hashsalt"] = "nightrelay"
    figure = Figure(figsize=(11, 1.0 + 1.55 * len(lanes)), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(lanes), 1, sharex=True, squeeze=False)[:, 0]
    lanes = sorted(lanes, key=lambda lane: min((bar.start for bar in bars if bar.region == lane.region), default=_LAST))
    colors = {lane.region: COLORS[index % len(COLORS)] for index, lane in enumerate(lanes)}
    top = max((step.price for lane in lanes for step in lane.steps), default=1.0) or 1.0
    for axis, lane in zip(axes, lanes, strict=True):
        _draw_lane(axis, lane, [bar for bar in bars if bar.region == lane.region], colors[lane.region], top)
        for name, instant in (marks or {}).items():
            axis.axvline(_x(instant), color=INK, linewidth=1, linestyle=":")
            if axis is axes[0]:
                left, right = axis.get_xlim()
                late = _x(instant) > left + 0.85 * (right - left)
                axis.annotate(
                    f" {name} ",
                    (_x(instant), 0.78),
                    xycoords=("data", "axes fraction"),
                    ha="right" if late else "left",
                    fontsize=8,
                    color=INK,
                )
    locator = mdates.AutoDateLocator(minticks=6, maxticks=14)
    axes[-1].xaxis.set_major_locator(locator)
    axes[-1].xaxis.set_major_formatter(
        mdates.ConciseDateFormatter(
            locator,
            formats=["%Y", "%b", "%a %d %b", "%H:%M", "%H:%M", "%S"],
            zero_formats=["", "%Y", "%b", "%a %d %b", "%H:%M", "%H:%M"],
            show_offset=False,
        )
    )
    axes[-1].set_xlabel("UTC; above each axis: the clock on that region's wall", fontsize=8, color=PALE)
    figure.supylabel(f"{currency} per instance-hour", fontsize=9, color=INK)
    figure.suptitle(title, fontsize=12, color=INK, x=0.01, ha="left")
    return figure


def _draw_lane(axis: Axes, lane: Lane, bars: Sequence[Bar], color: str, top: float) -> None:
    """Draw one region: shaded windows, the price as steps, its legs."""
    axis.set_ylim(-_STRIP * top, 1.25 * top)
    axis.set_yticks([tick for tick in axis.get_yticks() if 0 <= tick <= 1.25 * top])
    axis.set_title(lane.region, fontsize=9, color=INK, loc="left", pad=3)
    axis.set_title(lane.zone, fontsize=8, color=PALE, loc="right", pad=3)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(labelsize=8, colors=INK)
    axis.axhline(0, color=PALE, linewidth=0.6)
    if not lane.steps:
        return
    for step in lane.steps:
        _shade(axis, step)
    edges = [step.start for step in lane.steps] + [lane.steps[-1].end]
    axis.stairs(
        [step.price for step in lane.steps], [_x(edge) for edge in edges], color=PRICE, linewidth=1.6, baseline=None
    )
    axis.set_xlim(_x(edges[0]), _x(edges[-1]))
    for bar in bars:
        _draw_leg(axis, bar, lane.steps, color, top)
    if edges[-1] - edges[0] < timedelta(days=4):
        _local_hours(axis, lane, edges[1:-1])


def _shade(axis: Axes, step: Step) -> None:
    """Shade a window and name it where the name has room."""
    if step.window is None:
        return
    axis.axvspan(_x(step.start), _x(step.end), color=NIGHT, linewidth=0)
    if step.end - step.start > timedelta(hours=3):
        middle = _x(step.start + (step.end - step.start) / 2)
        axis.annotate(
            step.window, (middle, 0.9), xycoords=("data", "axes fraction"), ha="center", fontsize=7, color=PALE
        )


def _draw_leg(axis: Axes, bar: Bar, steps: Sequence[Step], color: str, top: float) -> None:
    """Draw a leg's bar in the strip below zero, with its label in it or beside it, and fill what it costs."""
    for step in steps:
        begin, end = max(bar.start, step.start), min(bar.end, step.end)
        if begin < end:
            axis.fill_between([_x(begin), _x(end)], [step.price] * 2, color=color, alpha=0.3, linewidth=0)
    left, right, middle = _x(bar.start), _x(bar.end), -_STRIP * top / 2
    axis.barh(middle, right - left, left=left, height=0.7 * _STRIP * top, color=color)
    lane_left, lane_right = axis.get_xlim()
    if (right - left) / (lane_right - lane_left) > len(bar.label) / _LETTERS:
        axis.annotate(bar.label, ((left + right) / 2, middle), ha="center", va="center", fontsize=8, color="white")
    else:
        axis.annotate(f" {bar.label}", (right, middle), ha="left", va="center", fontsize=8, color=color)


def _local_hours(axis: Axes, lane: Lane, edges: Sequence[datetime]) -> None:
    """Write the local hour of each price change above the axis: the clock on the region's own wall."""
    for edge in (edge for edge in edges if lane.steps[-1].end - edge > timedelta(hours=3)):
        hour = f" {edge.astimezone(ZoneInfo(lane.zone)):%H:%M}"
        axis.annotate(hour, (_x(edge), 0.0), xytext=(0, 2), textcoords="offset points", fontsize=7, color=PALE)


def _x(instant: datetime) -> float:
    """Return an instant as matplotlib's axis counts it: days."""
    return float(mdates.date2num(instant))


def as_svg(figure: Figure) -> bytes:
    """Return the figure as SVG, without the time of drawing in it."""
    sink = io.BytesIO()
    figure.savefig(sink, format="svg", metadata={"Date": None})
    return sink.getvalue()


def as_png(figure: Figure) -> bytes:
    """Return the figure as PNG, wide enough to read on a page."""
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=110)
    return sink.getvalue()
