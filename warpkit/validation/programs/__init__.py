"""Programs that turn an image into numbers: identified from outside, verified, compared.

`procedure` runs all steps. `asking` calls a program and reads its result, and `pictures` makes the
test pictures. `values` finds channels, gain and offset, and `looks` finds where the picture lies in
the result. `geometry` has the rules of sizes, crops and padding, and `hypotheses` finds those that
agree with the looks. `arithmetic` has the resizes (`weights`: those that warpkit lacks), and
`search` finds the one that gives the program's numbers. `twin` is the result, as a program of our
own, and `proof` compares it with the program on new pictures. `saying` turns it into attributes,
and `report` turns these into sentences.

`comparison` compares two programs, `findings` finds their differences, `wording` describes them,
and `page` shows them.
"""
