"""Every tolerance of the tests, with its reason; absolute and for images in [0, 1] unless stated.

eps is 2.2e-16 in float64 and 1.2e-7 in float32.
"""

TOLERANCE = {
    # the reference against float64 numpy: coordinates up to 100 pixels have rounding errors of
    # 1.4e-14, and an image of noise changes by 1 per pixel
    "reference float64": 1e-12,
    # the same in float32: coordinates are still float64; a sum of up to 64 products of weights
    # (lanczos4, sum of magnitudes 1.9) each rounded to 6e-8
    "reference float32": 1e-6,
    # a float16 has 11 bits, a bfloat16 8: half a unit in the last place of values below 2, and
    # the float32 computation on top
    "float16": 6e-4,
    "bfloat16": 4.5e-3,
    # grid_sample rounds the normalised coordinate to float32: 6e-8 of half the width, 40 pixels
    # here, times the bicubic's slope of up to 4 a pixel on noise
    "grid_sample float32": 4e-5,
    "grid_sample float64": 1e-12,
    # OpenCV 5 computes coordinates in float32: 53 pixels are off by 3e-6, times the slope of noise
    "cv2 5 float32": 4e-5,
    # bicubic at a = -0.75 bends straight lines by up to 0.048 of their slope, 1/7 here; four times
    "there and back": 1e-2,
    # cv2's solvers and ours differ in the last bits of an 8 x 8 system of pixels up to 100:
    # relative to the largest entry
    "cv2 matrices": 1e-9,
    # cv2.getPerspectiveTransform multiplies its points in float32: products up to 8,000 are off by
    # 2.4e-4, a hundred times less in the matrix after the division by similar ones; 9e-10 measured
    "cv2 perspective": 2e-8,
    # Python numbers make float32 matrices: 6e-8 of entries up to 100
    "float32 matrices": 2e-5,
    # relative: k1 / f^2 and k2 / f^4 of a lens learnt from 3,072 pixels by 300 steps of Adam, whose
    # last ones are 1e-3 of a unit; 7e-4 measured
    "learned lens": 5e-3,
    # the demonstration's promise, in degrees and pixels of an image of 128; 0.0044 and 0.0056
    # measured, since bilinear interpolation blurs the image and its hidden copy differently
    "demo degrees": 0.02,
    "demo corners": 0.02,
    # the same in values of [0, 1], as a mean: 9e-5 measured
    "demo levels": 5e-4,
    # a position of up to 40 pixels from a box's edges of 24 bits is off by 7e-15, times the slope
    # of noise, which lanczos4 and narrow boxes make steep; 2e-14 measured
    "resize box": 1e-11,
    # SciPy's filter is a recursion, ours a table; as parts of the range; 4e-14 and 1e-6 measured
    "zoom float64": 1e-12,
    "zoom float32": 1e-5,
    # a warp's position is computed by a matrix and its inverse: 1e-14 of 106 pixels, times slope 4
    "resize warp": 1e-12,
    # relative: a float32 gradient, summed over 10,000 pixels, against a float64 slope
    "demo slope": 1e-3,
    # OpenCV's weights are float32: 6e-8 of each, and of a sum of up to 64 products with a sum of
    # magnitudes of 3.6
    "opencv weights": 2e-6,
    # one derivative by two orders of the same float64 operations: a sum of up to 64 products of
    # values, weights and slopes below 10
    "two modes float64": 1e-12,
    # a mean of up to 25 warps in another order, and shifted maps rounded differently: 1e-14 of a
    # coordinate, times a slope of up to 4 per pixel on noise
    "mean of warps float64": 1e-12,
    # the same operations fused and ordered differently, in float32: some roundings of 6e-8, and
    # gradients to matrices that are sums of some 100 terms of up to 6
    "compiled float32": 1e-4,
    # thetas and pixel matrices reach a point by other sums: 1e-14 of 30 pixels, times up to 40
    # taps of noise in a gradient; a wrong tap or order is off by 1e-3 and more
    "objects against the loop": 1e-9,
    # the CPU's kernels choose the reference's neighbours to the last bit (same float64 operations
    # in the same order); weights are polynomials evaluated in another order. Relative to the
    # largest entry for gradients, which sum thousands of terms in another order
    "cpu torch.float64": 1e-12,
    # weights and sums in float32: lanczos4's 64 products, and sums over pixels of gradients
    "cpu torch.float32": 5e-6,
    # relative: differences over 1e-3 of the distance to a horizon, whose position is rounded to
    # 1e-15 of 1e-7; 2e-7 measured
    "slope near a horizon": 2e-6,
    # relative: the same float64 terms summed in pieces, some 1000 of them
    "pieces": 1e-11,
    # relative to the largest entry: the same float64 operations, and gradients that are sums of
    # some 200 terms in another order
    "shards float64": 1e-12,
    # the same in float32, a sum over up to 8 images of 48 pixels a side
    "shards float32": 1e-6,
    # float32 matrices map corners of up to 40 pixels: 6e-8 of them, and of sums of products whose
    # rows nearly cancel in a perspective of half a side; 2e-5 measured
    "float32 corners": 1e-4,
    # a file's integer cosines are within 6e-5 of the exact ones; 64 of them times up to 0.5
    "jpeg gradient": 1e-3,
    # the same, and colours with five digits; 2.4e-4 measured
    "jpeg colours": 1e-3,
    # float64 sums of some 400 products
    "jpeg adjoint": 1e-9,
    # float32 cosines and sums of a gradient of at most 1; 7e-7 measured
    "jpeg kernels": 4e-6,
    # relative: the same float64 operations in another order; points up to 1e3 pixels, and sums over
    # 153 pixels of terms that cancel
    "cuda depth": 1e-10,
    # float32 holds k / 255 to 3e-8, and times 255 a level to 1.5e-5
    "levels": 2e-5,
    # the descent's promise, in parts of half the image: 1/8 pixel of 24; 0.001 measured
    "learned theta": 0.01,
    # torchvision solves for perspectives in float64 and keeps float32: 6e-8 of 24 pixels, and in
    # the row below of 1/24 a pixel, times 24; slopes of 0.3 a pixel
    "torchvision float64": 2e-6,
    # the CUDA kernels against the reference, results and gradients, relative to the largest entry
    # above 1: weights in the type of the computation (bicubic's and lanczos4's are polynomials and
    # sines with a few roundings of 6e-8 or 1.1e-16), and sums in another order; 8e-7 and 3e-15
    # measured
    "cuda float32": 2e-6,
    "cuda float64": 2e-14,
    # one rounding of the type to 11 or 8 bits, which may go the other way
    "cuda float16": 1e-3,
    "cuda bfloat16": 8e-3,
    # fuzzed arguments below 1e4 against numpy, relative to the largest entry. float64: two ways of
    # solving systems of condition up to 1e4; float32: a result rounded once, or a sum of 5 products
    "fuzz float64": 1e-8,
    "fuzz float32": 2e-6,
    # relative to the largest entry: two ways of solving least squares of pixels up to 100, whose
    # condition is up to 1e4 for the equations of a homography
    "fits float64": 1e-9,
    # findHomography refines the direct linear transform by a descent, which stops at 1e-8
    "cv2 homography": 1e-6,
    # in pixels: findHomography of five and more noisy pairs stops its descent after ten steps;
    # 1.7e-4 measured at a noise of 3 pixels
    "cv2 homography pixels": 5e-4,
    # in pixels: findHomography's descent from two starts, by a singular and by an eigenvalue
    # decomposition, which differ by rounding; 8e-7 measured at a noise of 3 pixels
    "homography of two starts": 1e-5,
    # in pixels: both solve four pairs exactly, cv2 by squared equations; 9e-10 measured
    "cv2 homography of four": 1e-8,
    # in degrees: OpenCV's arctangent is a polynomial of four terms; 0.0095 measured
    "cv2 arctangent": 0.0097,
    # estimateAffine2D also refines by a descent, which stops at relative gains of about 1e-7
    "cv2 descent": 1e-4,
    # pixels of lenses at a focal length of 500, float64: some 30 operations on directions up to 5,
    # whose sixth powers are up to 1e4, times coefficients of 0.05
    "pixels float64": 1e-9,
    # the solver's residual is 1e-15 of a direction where it stops, and 1e-10 at the worst that
    # counts as found: 500 times that in pixels, 1e-11 measured
    "solved pixels": 1e-9,
    # undistortPoints against cv2's, relative to the largest coordinate: both take float64 steps,
    # which differ in their last bits, and float32 is rounded once more
    "cv2 points float32": 2e-7,
    "cv2 points float64": 1e-12,
    # cv2's rotation vectors of matrices, in radians: the nearest rotation by another singular value
    # decomposition, which the arc cosine magnifies by up to 10 here; float32 rounds once more
    "cv2 vectors float64": 1e-12,
    "cv2 vectors float32": 1e-6,
    # the same at 180 degrees, where the arc cosine of -1 + 1e-16 is off by 1e-8
    "cv2 half turns": 1e-7,
    # relative to the largest entry: the same chain rule in another order; 7e-14 measured
    "cv2 jacobians": 1e-11,
    # cv2 undistorts a grid by five steps of a fixed-point iteration: 1e-3 of a mild lens's places
    # is left of each side, which the focal length of 500 multiplies; 0.3 measured
    "five steps": 1.0,
    # relative to the largest: OpenCV sums up to 25 float32 in another order, some roundings of
    # 6e-8; 2e-7 measured
    "order of sums": 1e-6,
    # the fraction of bytes that OpenCV's logarithm rounds the other way at ties; 4e-5 measured
    "polar bytes": 5e-4,
    # of float32 noise, whose slope is 1 a pixel: its logarithm's last bits, 4e-6 pixels of 40
    "polar float32": 1e-4,
    # in pixels: the extreme of 2,001 samples along a side of 640 pixels, a curve that bends by up
    # to 1e-3 a pixel, is off by 1/8 of the squared distance of 0.3; 2e-5 measured
    "border of samples": 1e-4,
    # corners, in pixels, of images of waves of 6 pixels and more, which bilinear interpolation
    # and the smoothing before it distort; 0.035 measured
    "align pixels": 0.06,
    # corners, in pixels, of images of which one was interpolated from the other: the remainder of
    # the tolerance of 1e-3 after a step that converges quadratically; 1e-6 measured
    "align exact pixels": 1e-4,
    # relative: differences of 2e-5 of a solution found to 1e-10 of a pixel
    "align gradient": 1e-3,
    # relative, over steps of 1e-3 and 1e-4 of noise in photographs, which add curvature
    "align photographs' gradient": 0.02,
    # relative to the largest of a result: sums of 400 products, in float32 in torch's order
    "align sums float32": 2e-5,
    "align sums float64": 1e-12,
    # pixels, and fractions of a gain: solutions of the same equations by other operations. Gain is
    # rounded to the images' type in between, so that the costs of float32's last steps differ;
    # 1e-13 and 1e-7 measured on photographs
    "align steps float64": 1e-10,
    "align steps float32": 1e-5,
    # relative to the largest of a result: sums of 10^4 products in another order, and the C
    # library's arctangent; 2e-14 measured
    "lens kernels": 1e-12,
    # pixels up to 100 of points in another camera, against OpenCV's formulas in another order,
    # whose last bits a lens's slope of up to 20 enlarges; 4e-13 measured
    "depth points": 1e-10,
    # means of products of numbers in [0, 1], and squares of their differences, in another order;
    # 2e-7 and 5e-16 measured
    "matching torch.float32": 2e-6,
    "matching torch.float64": 1e-13,
    # relative to the largest: sums of some thousand float32 numbers, whose signs differ, against
    # float64; 4e-6 measured
    "matching gradient": 5e-5,
    # the inverse of a lens near its fold, where the slopes are nearly singular
    "lens roots": 1e-10,
    # the same order of operations, contracted or not
    "exact inverse": 1e-13,
    # sums of five products, in another order
    "similarity kernels": 1e-12,
    # relative, for quadrangles of 100 pixels at 5,000 pixels: 2e-16 times the square of 50, twice
    "quad kernels": 1e-9,
    # normalised pixel_values, as promised; 0 measured, except for the place of one rounding
    "processors": 1e-5,
    # relative: a slope over 80 levels of programs that round to 8 bits, up to twice, and clamp
    # what bicubic and lanczos overshoot on noise
    "processors slope": 0.1,
    # relative: float32 steps on levels up to 255, over 76 levels; 1e-4 measured at most
    "processors outputs slope": 1e-3,
    # relative to the spread of noise, as a mean: torch's bicubic of floats is not Pillow's, nor is
    # what it does not antialias
    "processors libraries": 0.3,
}
