"""Crops, pastes and transforms the objects of images, all at once and with gradients.

`crop`, `paste` and `transform` have one function each; `arguments` validates their arguments,
`windows` finds what crops read, and `means` averages patches that are made smaller.
`engine.definitions.objects`, and the backends that have kernels for it, paint the objects.
"""

from warpkit.patches.crop import crop_patches as crop_patches
from warpkit.patches.paste import paste_patches as paste_patches
from warpkit.patches.transform import transform_patches as transform_patches
