"""Other libraries' numbers, bit for bit, in torch.

`opencv` chooses the path of a call; `opencv4_positions`, `opencv4_sums` and `opencv4_tables` are
the fixed-point path of OpenCV 4 and much of 5, `opencv5` is 5's float path, `opencv_matrices`
solves for matrices as it does; `guarantees` lists where its pixels are promised, and why not
elsewhere. The face with OpenCV's names is `warpkit.opencv`.
"""
