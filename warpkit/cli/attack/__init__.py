"""`warpkit attack`: `models` attacks the user's model or `small_classifier`, `programs` parses the
pipeline, and `run` shows the results.
"""
