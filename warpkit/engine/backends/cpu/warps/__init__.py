"""Warps on a CPU: exact arithmetic, all maps, interpolations, borders and types.

`eager` and `operators` are the two ways in, `launch` goes from tensors to kernel calls by the sizes
of `work`; `forward` and `backward` are the kernels, whose steps are `positions`, `weights`, `tile`,
`window` and `backward_steps`; `labels` moves whole numbers, `inverse` inverts matrices. OpenCV's
arithmetic is in `..opencv`.
"""
