"""Other libraries' numbers, bit for bit, in torch.

Of warps, `opencv` chooses the path of a call; `opencv4_positions`, `opencv4_sums` and
`opencv4_tables` are the fixed-point path of OpenCV 4 and much of 5, `opencv5` is 5's float path.
Of resizes, `resize` names what there is; `opencv_resize`, `opencv_ipp_resize` and `pillow` have the
pixels, `resize_tables` and `pillow_tables` their taps, `resize_axes` what they share. The rest of
cv2 is by subject: `opencv_lenses`, `opencv_matrices`, `opencv_points`, `opencv_polar`,
`opencv_pyramids`. `guarantees` lists where OpenCV's pixels are promised, and why not elsewhere. The
face with OpenCV's names is `warpkit.opencv`.
"""
