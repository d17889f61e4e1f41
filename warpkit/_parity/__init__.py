"""What `warpkit.validation` is made of."""
