"""Warps on a CPU: exact arithmetic, all maps, interpolations, borders and types.

`eager`, `lean` and `operators` are the ways in, `launch` goes from tensors to kernel calls by the
sizes of `work`. Planes that are read where they lie: `pairs` and `pairs_backward`, whose steps are
`pair_tile`, `pair_steps`, `pair_windows`, `pair_gradients` and `pair_jobs`, by `pairs_launch`;
`nearest`, by `nearest_launch`. Everything else goes through windows: `forward` and `backward`,
whose steps are `positions`, `weights`, `tile`, `window` and `backward_steps`. `inverse` inverts
matrices. OpenCV's arithmetic is in `..opencv`.
"""
