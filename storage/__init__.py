"""Bytes: object stores, datasets, checkpoints, handoff and tiers. Knows neither Prefect nor planning."""
