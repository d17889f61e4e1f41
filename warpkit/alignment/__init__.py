"""Aligns one image to another: `warpkit.align`.

`pairs` is what a user calls; `arguments` checks. `coarse_to_fine` goes, from a start or a search
for starts (`search`), down the levels of `pyramid` to a verdict; `solver` makes the steps of one
level from the normal equations of `equations`, in the parameters of `models`; `implicit` has the
gradient. Matrices from points stand in `warpkit.geometry`, and what bends in `warpkit.flow`.
"""

from warpkit.alignment.pairs import Alignment as Alignment
from warpkit.alignment.pairs import align as align
