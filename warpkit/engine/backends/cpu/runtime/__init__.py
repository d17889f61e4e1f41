"""What kernels run on: how they are compiled, vectors, threads, and memory.

`compiler` compiles and keeps them, `simd` and `words` are vector registers and packed loads,
`threads` share units of work out, `result_memory` and `scratch` are the memory of results and of
tiles. No pixel is computed here.
"""
