"""`warpkit bench`: `work` measures, `noise` checks the machine's load, `run` prints the table."""
