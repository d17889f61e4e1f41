"""`warpkit bench`: `work` measures, `noise` listens meanwhile, `run` shows it on a terminal."""
