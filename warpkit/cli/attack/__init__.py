"""`warpkit attack`: `models` fools a model, the user's or `small_classifier`; `run` shows it."""
