"""What kernels run on: how they are compiled, vectors, threads, and memory.

`compiler` compiles and keeps them, `simd` and `packed_loads` are vector registers and words of
bytes, `threads` share units of work out, `result_memory` and `scratch` are the memory of results
and of tiles. No pixel is computed here.
"""
