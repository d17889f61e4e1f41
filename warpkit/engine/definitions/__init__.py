"""Definitions: what every function computes, in plain torch, which prefers clarity to speed.

Sampling: `rules` has weights and borders, `maps` the source positions of output pixels, and
`reference` the sum over taps. `antialias` and `antialias_points` compute means of warps, and
`resize` defines resizing. `fill` is the value of missing taps, and `labels` handles integers that
are only moved. `layout` is about batches and memory, `bounds` about clamps and their gradients,
`rounding` about exact arithmetic. OpenCV's own numbers are in `arithmetic`.

`lens_models` and the files beside it define lenses, `quads` and `fits` matrices of points, `depth`,
`front`, `correlation` and `sweep` matching and scenes, `jpeg` files; `objects` is a folder.
"""
