"""`warpkit resize`: `work` computes; the files are `warpkit warp`'s business."""
