"""`warpkit attack`: `work` computes, `run` shows it on a terminal."""
