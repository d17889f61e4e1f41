"""Paints objects over images on a CPU, as `engine.compositing` does, by the native library.

`painter` paints them, by blocks of numbers that `calls` prepares; `crop` cuts boxes out by the
kernels of warps; `autograd` is what their gradients share.
"""
