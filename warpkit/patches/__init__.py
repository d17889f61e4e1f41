"""Crops, pastes and transforms the objects of images, all at once and with gradients.

`crop`, `paste` and `transform` have a function each; `arguments` checks what they are handed. How
objects become pixels is in `engine.compositing`, and in whatever backend has kernels for it.
"""

from warpkit.patches.crop import crop_patches as crop_patches
from warpkit.patches.paste import paste_patches as paste_patches
from warpkit.patches.transform import transform_patches as transform_patches
