"""Defines sampling: which pixels a point reads, with which weights.

`rules` are weights and borders, `maps` where output pixels look, `reference` the sum over taps;
`antialias` and `antialias_points` are means of warps, `resize` is another size. `fill` is what
missing taps show, `labels` are whole numbers that only move; `layout` is about batches and memory,
`bounds` about clamps and their gradients, `rounding` about exact number arithmetic. Plain torch,
slow where slow is obvious; OpenCV's own numbers are in `arithmetic`.
"""
