"""`warpkit.align`."""
