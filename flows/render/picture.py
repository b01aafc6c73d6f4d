"""The picture of a relay: legs as bars over each region's price curve, so that one sees at a glance why it moves.

One lane per region, all on one UTC axis; windows are shaded and named, the price is a step line, the legs are bars in
the run's colour. Drawn by matplotlib without a display; the same values always give the same SVG.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from matplotlib import dates as mdates
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK = "#1f2933"
PALE = "#8a97a6"
NIGHT = "#dfe6f5"
PRICE = "#3d5a98"
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
    colors = {lane.region: COLORS[index % len(COLORS)] for index, lane in enumerate(lanes)}
    top = max((step.price for lane in lanes for step in lane.steps), default=1.0) or 1.0
    for axis, lane in zip(axes, lanes, strict=True):
        _draw_lane(axis, lane, [bar for bar in bars if bar.region == lane.region], colors[lane.region], top)
        for name, instant in (marks or {}).items():
            axis.axvline(_x(instant), color=INK, linewidth=1, linestyle=":")
            if axis is axes[0]:
                axis.annotate(name, (_x(instant), 1.0), xycoords=("data", "axes fraction"), fontsize=8, color=INK)
    axes[-1].xaxis.set_major_locator(mdates.AutoDateLocator(minticks=6, maxticks=14))
    axes[-1].xaxis.set_major_formatter(mdates.ConciseDateFormatter(axes[-1].xaxis.get_major_locator()))
    axes[-1].set_xlabel("UTC", fontsize=9, color=INK)
    figure.supylabel(f"{currency} per instance-hour", fontsize=9, color=INK)
    figure.suptitle(title, fontsize=12, color=INK, x=0.01, ha="left")
    return figure


def _draw_lane(axis: Axes, lane: Lane, bars: Sequence[Bar], color: str, top: float) -> None:
    """Draw one region: shaded windows, the price as steps, its legs."""
    for step in lane.steps:
        if step.window is not None:
            axis.axvspan(_x(step.start), _x(step.end), color=NIGHT, linewidth=0)
            middle = step.start + (step.end - step.start) / 2
            if step.end - step.start > timedelta(hours=3):
                axis.annotate(
                    step.window,
                    (_x(middle), 0.9),
                    xycoords=("data", "axes fraction"),
                    ha="center",
                    fontsize=7,
                    color=PALE,
                )
    edges = [step.start for step in lane.steps] + [lane.steps[-1].end] if lane.steps else []
    prices = [step.price for step in lane.steps]
    if edges:
        axis.stairs(prices, [_x(edge) for edge in edges], color=PRICE, linewidth=1.6, baseline=None)
        axis.set_xlim(_x(edges[0]), _x(edges[-1]))
    for bar in bars:
        axis.barh(
            0.16 * top, _x(bar.end) - _x(bar.start), left=_x(bar.start), height=0.22 * top, color=color, alpha=0.95
        )
        middle = bar.start + (bar.end - bar.start) / 2
        axis.annotate(bar.label, (_x(middle), 0.16 * top), ha="center", va="center", fontsize=8, color="white")
    axis.set_ylim(0, 1.25 * top)
    axis.set_title(lane.region, fontsize=9, color=INK, loc="left", pad=3)
    _local_hours(axis, lane, edges)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.tick_params(labelsize=8, colors=INK)


def _local_hours(axis: Axes, lane: Lane, edges: Sequence[datetime]) -> None:
    """Write the local hour of each price change under the curve: the clock on the region's own wall."""
    if not edges:
        return
    span = edges[-1] - edges[0]
    for edge in edges[1:-1]:
        if span < timedelta(days=4):
            hour = edge.astimezone(ZoneInfo(lane.zone))
            axis.annotate(
                f" {hour:%H:%M}",
                (_x(edge), 0.02),
                xycoords=("data", "axes fraction"),
                fontsize=7,
                color=PALE,
                ha="left",
            )


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
