"""`warpkit warp`: `work` warps one image, `run` maps input files to output files."""
