"""Aligns one image to another: `warpkit.align`.

`pairs` has the public function; `arguments` validates. `coarse_to_fine` starts from given or
searched matrices (`search`), goes down the levels of `pyramid` and decides on convergence; `solver`
makes the steps of one level from the normal equations of `equations`, in the parameters of
`models`; `implicit` has the gradient. `warpkit.geometry` has matrices from points, `warpkit.flow`
deformations.
"""

from warpkit.alignment.registration import Alignment as Alignment
from warpkit.alignment.registration import align as align
