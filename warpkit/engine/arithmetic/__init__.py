"""Other libraries' numbers, bit for bit, in torch.

For warps, `opencv` chooses the path of a call: `opencv4_positions`, `opencv4_sums` and
`opencv4_tables` are the fixed-point path of OpenCV 4 and of many calls in OpenCV 5; `opencv5` is
the float path of OpenCV 5. For resizes, `resize` lists the supported ones; `opencv_resize`,
`opencv_ipp_resize` and `pillow` compute the pixels, `resize_tables` and `pillow_tables` their taps,
and `resize_axes` is shared code. Other functions of cv2 are in `opencv_lenses`, `opencv_matrices`,
`opencv_points`, `opencv_polar` and `opencv_pyramids`. `guarantees` lists the settings in which
OpenCV's pixels are guaranteed, and the reasons why others are not. The package with OpenCV's names
is `warpkit.opencv`.
"""
