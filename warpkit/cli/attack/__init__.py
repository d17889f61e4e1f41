"""`warpkit attack`: `models` fools a model of the user's, `work` the small one; `run` shows it."""
