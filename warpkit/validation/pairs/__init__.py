"""Identifies programs from pairs of an original and its result, without calling them.

`matching` matches files by their names, and `reading` reads them (`jpeg`: the tables of JPEG
files). `placing` finds where a picture lies in its result, and `rules` finds the sizes, crops and
paddings that agree with all places. `numbers` measures channels, gain and offset. `pool` has one
resize of each kind that gives different numbers, and `comparing` compares these with the pairs.
`parting` groups the pairs by program, and `naming` describes each program. `procedure` runs the
steps.

Rules, resizes, values and twins come from `programs`.
"""
