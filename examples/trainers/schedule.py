"""The learning rate, as both shipped trainers use it."""

from __future__ import annotations

import math


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Return the rate of a step: a short warm-up, then half a cosine down to a tenth."""
    warm = max(1, steps // 20)
    if step < warm:
        return peak * (step + 1) / warm
    return peak * (0.55 + 0.45 * math.cos(math.pi * (step - warm) / max(1, steps - warm)))
