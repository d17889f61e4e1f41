"""Computes pixels; everything in here is private.

`definitions` defines every result in plain torch, and `arithmetic` has other libraries' numbers.
`cpu` and `triton` have kernels that compute the same results faster, and `onnx` has graphs.
`operators` bind definitions to kernels by `binding`; `backends` selects among them. Public
functions, and all checks of users' arguments, are in other packages.
"""
