"""Identifies programs from pairs of an original and its result, without calling them.

`matching` sets files side by side by their names and `reading` reads them (`jpeg` the tables of
those that were compressed). `placing` finds where a picture lies in its result, `rules` the sizes,
crops and paddings that agree with all places, `numbers` channels, gain and offset. `pool` has one
resize of each kind that gives other numbers; `comparing` holds them against the pairs, `parting`
says which pairs one program made, and `naming` what can be said of it. `procedure` runs the steps.

Rules, resizes, values and twins are those of `programs`.
"""
