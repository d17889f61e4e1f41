"""One way from a function of tensors to a kernel.

`operator` makes everything that torch asks of a function from its definition and its kernels.
`plan` keeps what depends on the kind of a call alone. Only this package asks torch in which mode a
call is made.
"""
