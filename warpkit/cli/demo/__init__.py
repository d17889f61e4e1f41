"""`warpkit demo`: `work` computes, `figure` draws, `run` prints."""
