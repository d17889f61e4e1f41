"""Objects over images, in plain torch: which pixels, what they show, and in which order.

`rectangles` are the pixels of objects, `source_maps` where they look, `gather` reads there,
`sources` are the colours and coverages that come of it, `over` composes the layers. Compiled
counterparts are in `backends.cpu.objects`; arguments are checked in `warpkit.patches`.
"""
