#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the numbers of tests/unit/models/ssim_test.cc: the SSIM of drawn frames, by scikit-image.

    python3 -m venv venv && venv/bin/pip install scikit-image==0.26.0 numpy==2.4.6
    venv/bin/python scripts/golden/ssim.py
"""
import numpy
from skimage.metrics import structural_similarity

LUMA = numpy.array([0.299, 0.587, 0.114])


def picture(height: int, width: int, kind: int) -> numpy.ndarray:
    """RGB in [-1, 1], the same as in the test; as f32, which the test has."""
    y, x, c = numpy.meshgrid(range(height), range(width), range(3), indexing="ij")
    values = (7 * x + 13 * y + 29 * c + x * y) % 64 / 31.5 - 1
    noise = (x * x + 3 * y * y * x + 5 * c) % 17 / 8 - 1
    changed = {0: values, 1: 0.8 * values + 0.1, 2: values + 0.2 * noise, 3: -values, 4: noise}[kind]
    return changed.astype(numpy.float32)


for height, width in ((11, 11), (16, 24), (37, 19)):
    original = (picture(height, width, 0).astype(float) + 1) / 2 @ LUMA
    for kind in range(5):
        other = (picture(height, width, kind).astype(float).clip(-1, 1) + 1) / 2 @ LUMA
        value = structural_similarity(original, other, gaussian_weights=True, sigma=1.5,
                                      use_sample_covariance=False, data_range=1.0)
        print(f"{{{height}, {width}, {kind}, {value:.12f}}},")
