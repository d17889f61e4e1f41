"""`warpkit demo`: `work` computes, `figure` draws, `run` shows it on a terminal."""
