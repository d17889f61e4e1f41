"""What Numba's kernels run on: how they are compiled, vectors, and memory.

`compiler` compiles and keeps them, `cache_lock` lets one process do so where several want the same;
`simd` and `packed_loads` are vector registers and words of bytes for Numba's Python, `vector_code`
and `vector_values` write kernels instruction by instruction; `rules` has maps and borders,
`scratch` each thread's memory. No pixel is computed here.
"""
