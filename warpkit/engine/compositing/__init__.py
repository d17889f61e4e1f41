"""Composites objects over images, in plain torch.

`rectangles` are the pixels of objects, `source_maps` where they look, `frames` those of turned
boxes and quads and `folding` what their borders make of it, `gather` reads there,
`sources` are the colours and coverages that come of it, `over` composes the layers. `layers` says
what is painted, for a backend that does all of it. Arguments are checked in `warpkit.patches`.
"""
