"""Computes pixels; everything in here is private.

`sampling` and `definitions` define every result in plain torch, `arithmetic` has other libraries'
numbers, `compositing` paints objects over images, and `backends` compute the same results faster:
`operators` bind definitions and kernels by `binding`. Public functions, and all checks of users'
arguments, are in other packages.
"""
