"""Reproduces the image processors of transformers, timm and open_clip from their configuration.

`sources` finds the configuration, `configuration` fills in what it leaves out (`defaults.json`) and
reads old forms, and `program` makes steps of it: `kinds` is the table of them, `operations`,
`patches` and `sampling` what they do, `sizes` and `patch_sizes` what a resize aims at.
`other_libraries` has timm's and open_clip's. Nothing of these libraries is imported.
"""
