"""What kernels run on: how they are compiled, vectors, threads, and memory.

`compiler` compiles and keeps them, `cache_lock` lets one process do so where several want the same;
`simd` and `packed_loads` are vector registers and words of bytes for Numba's Python, `vector_code`
and `vector_values` write kernels instruction by instruction; `threads` share units of work out,
`result_memory` and `scratch` are the memory of results and of tiles. No pixel is computed here.
"""
