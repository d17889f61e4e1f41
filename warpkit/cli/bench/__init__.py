"""`warpkit bench`: `work` measures, `run` shows it on a terminal."""
