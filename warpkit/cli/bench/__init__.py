"""`warpkit bench`: `work` measures by `timing`, `noise` checks the machine's load, `run` prints."""
