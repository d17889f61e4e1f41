"""Computes pixels; everything in here is private.

`sampling` defines every result in plain torch, `arithmetic` has other libraries' numbers,
`compositing` paints objects over images, and `backends` compute the same faster. What a user calls,
and whatever checks a user's arguments, stands outside.
"""
