"""Reproduces the image processors of transformers, timm and open_clip from their configuration.

`sources` finds the configuration, and `configuration` adds missing options (`defaults.json`) and
reads old forms. `program` turns it into steps: `kinds` lists the steps of each kind, and
`operations`, `patches` and `sampling` implement them. `sizes` and `patch_sizes` compute the sizes
of resizes. `other_libraries` has timm's and open_clip's programs. None of these libraries is
imported.
"""
