"""Objects over images on a CPU: what `engine.compositing` does, compiled.

`opaque` paints boxes that hide what is below and `composite` those with a coverage, each with its
kernels beside it; `crop` cuts boxes out by the kernels of `warps`; `autograd` is what their
gradients share.
"""
