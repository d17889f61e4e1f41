"""`warpkit attack`: `models` fools a model, the user's or `small_classifier`, behind a pipeline in
words (`programs`); `run` shows it.
"""
