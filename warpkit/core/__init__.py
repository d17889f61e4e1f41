"""What every package needs, independent of pixels.

`checks` has the one form of error, `numbers` holds single ones and ranges to it; `names` and
`slips` answer other libraries' words and conventions, `caller_warnings` point at the caller's line;
`tracing` and `sharding` tell what torch does with the tensors of a call; `environment` and
`progress` are about the machine and the terminal. Imports from no other room.
"""
