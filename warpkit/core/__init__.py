"""What every package needs, independent of pixels.

`checks` validates arguments, `numbers` single numbers and ranges; `names` and `mistakes` recognise
other libraries' names and conventions, `caller_warnings` point at the caller's line; `tracing` and
`sharding` find out what torch does with the tensors of a call; `environment` and `progress` are
about the machine and the terminal. Imports from no other package of warpkit.
"""
