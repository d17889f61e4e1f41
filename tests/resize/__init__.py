"""Tests of resizing: values, gradients, OpenCV's and Pillow's pixels."""
