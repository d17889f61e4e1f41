"""Experiments on real data, each with its table and its picture."""
