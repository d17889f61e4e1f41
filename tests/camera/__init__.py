"""Tests of lenses."""
