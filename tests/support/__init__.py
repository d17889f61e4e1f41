"""Helpers for several test packages: inputs, naive implementations, tolerances."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
