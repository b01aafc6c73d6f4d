"""Figures of planning: exactness, speed, many runs with their certificate, and that no plan does harm."""
