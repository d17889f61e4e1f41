"""Objects over images on a CPU: what `engine.compositing` does, compiled.

`opaque` paints boxes that hide what is below (`opaque_kernels`) and `composite` those with a
coverage (`composite_forward`, `composite_backward`); `crop` cuts boxes out by the kernels of
`warps`; `autograd` is what their gradients share.
"""
