"""Composites objects over images, in plain torch.

`rectangles` are the pixels of objects, `source_maps` their source positions, `frames` those of
rotated boxes and quads, and `folding` applies the borders of the latter. `gather` samples at these
positions, `sources` computes colours and coverages from the samples, and `over` composites the
layers. `objects` defines crops and painted objects by all of this. `warpkit.patches` checks
arguments.
"""
