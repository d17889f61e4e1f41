"""Experiments on real data, each with a table and a picture."""
