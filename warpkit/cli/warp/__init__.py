"""`warpkit warp`: `work` warps one picture, `run` says which file becomes which."""
