"""Inspects, replaces and checks gradients.

`surrogates` replaces gradients, `support` finds the entries that get one, with `reasons` for the
others, and `check` compares with finite differences. `engine` computes the gradients themselves.
"""

from warpkit.gradients.check import GradientReport as GradientReport
from warpkit.gradients.check import check_gradients as check_gradients
from warpkit.gradients.support import GradientSupport as GradientSupport
from warpkit.gradients.support import gradient_support as gradient_support
from warpkit.gradients.surrogates import quantize as quantize
from warpkit.gradients.surrogates import straight_through as straight_through
from warpkit.gradients.surrogates import through_uint8 as through_uint8
