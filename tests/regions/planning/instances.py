"""Small random instances with everything in them: outages, uneven slots, entry fees, startups, widths, residency."""

from __future__ import annotations

import numpy as np

from regions.planning.instance import KEPT, NEVER, Instance


def random_instance(seed: int) -> Instance:
    """Return a world of 2-4 regions, 1-2 accelerators, 1-3 stages and 8-18 slots; some cannot be done at all."""
    rng = np.random.default_rng(seed)
    regions, stages, slots = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(8, 19))
    instants = np.concatenate([[0], np.cumsum(rng.choice([300, 600, 900], slots))]) + 1_000_000
    borders = np.concatenate([[0], np.cumsum(rng.integers(2, 9, stages))])
    sites = [(r, k) for k in range(stages) for r in range(regions) for _ in range(int(rng.integers(1, 3)))]
    sites = [site for site in sites if rng.random() > 0.1] or sites
    count = len(sites)
    rent = rng.integers(1_000, 60_000, (count, slots))
    rent[rng.random((count, slots)) < rng.choice([0.0, 0.1, 0.3])] = NEVER
    gain = rng.integers(1, 4, (count, 1)) * np.ones((1, slots), np.int64)
    span, start_gain, fixed, start_rent = _starts(rng, rent, gain)
    lag, fee = _moves(rng, stages, regions)
    bits = np.full(regions, -1)
    lacks = np.zeros((stages, regions), bool)
    kept = np.full(stages, KEPT)
    home, mask = int(rng.integers(regions)), 0
    if rng.random() < 0.6:
        if rng.random() < 0.4:
            kept[1:] = rng.integers(0, 3, stages - 1)
        lacking = [r for r in range(regions) if kept.any() or r != home][:3]
        bits[lacking] = np.arange(len(lacking))
        lacks[:, lacking] = rng.random((stages, len(lacking))) < 0.8
        mask = 1 << int(bits[home]) if bits[home] >= 0 else 0
    running = int(rng.integers(count)) if rng.random() < 0.3 and sites[0][1] == 0 else -1
    if running >= 0 and sites[running][1] != 0:
        running = -1
    if running >= 0 and bits[sites[running][0]] >= 0:
        mask |= 1 << int(bits[sites[running][0]])
    return Instance(
        instants=instants,
        borders=borders,
        site_region=np.array([r for r, _ in sites]),
        site_stage=np.array([k for _, k in sites]),
        rent=rent,
        gain=gain,
        start_span=span,
        start_gain=start_gain,
        start_fixed=fixed,
        start_rent=start_rent,
        lag=lag,
        fee=fee,
        stay=rng.integers(0, 50, (stages, regions, slots)),
        lacks=lacks,
        replica_bit=bits,
        keep=rng.integers(0, 80, (stages, int(bits.max()) + 1, slots)),
        replicas_kept=kept,
        first_region=np.arange(regions) if rng.random() < 0.1 else np.array([home]),
        first_work=1 if running >= 0 else int(rng.integers(0, 2)),
        first_mask=mask,
        first_site=running,
        stop_penalty=rng.integers(0, 2_000, slots + 1) if running >= 0 else None,
    )


def _starts(rng: np.random.Generator, rent: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, ...]:
    count, slots = rent.shape
    span = rng.integers(1, 4, (count, 1)) * np.ones((1, slots), np.int64)
    lost = rng.integers(0, 2, (count, 1))
    start_gain, fixed, start_rent = (np.zeros_like(rent) for _ in range(3))
    for site in range(count):
        for t in range(slots):
            cover = slice(t, t + int(span[site, t]))
            if cover.stop > slots or (rent[site, cover] >= NEVER).any():
                span[site, t] = 0
                continue
            start_gain[site, t] = max(1, gain[site, cover].sum() - lost[site, 0])
            fixed[site, t] = rent[site, t] // 3
            start_rent[site, t] = rent[site, cover].sum() - fixed[site, t]
    return span, start_gain, fixed, start_rent


def _moves(rng: np.random.Generator, stages: int, regions: int) -> tuple[np.ndarray, np.ndarray]:
    lag = np.zeros((stages, 2, 2, regions, regions), np.int64)
    lag[:, 0, 0] = rng.integers(1, 1_000, (stages, regions, regions))
    fee = np.zeros_like(lag)
    fee[:, 0, 0] = rng.integers(0, 4_000, (stages, regions, regions))
    lag[:, 1, 0] = lag[:, 0, 0] + rng.integers(0, 1_000, (stages, regions, regions))
    fee[:, 1, 0] = fee[:, 0, 0] + rng.integers(0, 8_000, (stages, regions, regions))
    lag[:, :, 1] = lag[:, :, 0] + rng.integers(0, 1_200, (stages, 1, regions, regions))
    fee[:, :, 1] = fee[:, :, 0] + rng.integers(0, 20_000, (stages, 1, regions, regions))
    forbidden = rng.random((regions, regions)) < 0.2
    lag[:, :, :, forbidden] = -1
    lag[:, :, 0, np.arange(regions), np.arange(regions)] = -1
    return lag, fee
