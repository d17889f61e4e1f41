"""What tests of several rooms share: inputs, naive versions of what is tested, tolerances."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
