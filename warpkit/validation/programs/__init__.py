"""Programs that turn an image into numbers: identified from outside, verified, compared.

`procedure` asks a program, in the order of its steps: `asking` calls it and reads what it returns,
`pictures` are what it is asked with, `values` finds channels, gain and offset, `looks` where the
picture lies in the result, `geometry` has the rules of sizes, crops and padding and `hypotheses`
those that agree with the looks, `arithmetic` the resizes (`weights` those that no other room has)
and `search` which of them give the program's numbers. `twin` is what was found, as a program of our
own; `proof` holds it against the program on new pictures; `saying` turns it into attributes, and
`report` those into sentences.

`comparison` sets two of them side by side, `findings` finds what makes them differ, `wording`
says it, and `page` shows it.
"""
