"""Paints objects over images on a CPU, as `engine.definitions.objects` does, in the native library.

`painter` paints objects through blocks of numbers that `calls` prepares. `crop` crops boxes with
the kernels of warps.
"""
