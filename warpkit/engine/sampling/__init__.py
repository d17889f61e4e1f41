"""Defines sampling: the pixels that a point reads, and their weights.

`rules` has weights and borders, `maps` the source positions of output pixels, and `reference` the
sum over taps. `antialias` and `antialias_points` compute means of warps, and `resize` defines
resizing. `fill` is the value of missing taps, and `labels` handles integers that are only moved.
`layout` is about batches and memory, `bounds` about clamps and their gradients, `rounding` about
exact arithmetic. All is plain torch and prefers clarity to speed; OpenCV's own numbers are in
`arithmetic`.
"""
