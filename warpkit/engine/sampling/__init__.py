"""The definition: which pixels a point reads, with which weights, and what comes out.

`rules` are weights and borders, `maps` where output pixels look, `reference` the sum over taps,
`antialias` means of warps; `fill` is what missing taps show, `labels` whole numbers that only move,
`layout` batches and memory, `rounding` exact number arithmetic. Plain torch, slow where slow is
obvious; OpenCV's own numbers are in `arithmetic`.
"""
