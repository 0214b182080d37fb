// The structural similarity of frames: a measure of reconstructions beside the PSNR.
//
// At each place of a window of 11 x 11 pixels in the picture, the similarity is
//
//   (2 m_a m_b + C1) (2 c + C2) / ((m_a^2 + m_b^2 + C1) (v_a + v_b + C2))
//
// with the means m, variances v and covariance c of the two windows' luma, weighted by a Gaussian
// of standard deviation 1.5, and with C1 = 0.01^2 and C2 = 0.03^2 for luma from 0 to 1. The SSIM is
// the mean over places, then over frames: 1 for equal frames, about 0 for unlike ones. Luma is
// 0.299 R + 0.587 G + 0.114 B.
// Source: Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to
// structural similarity" (2004). scikit-image gives the same numbers (scripts/golden/ssim.py).
// Shape letters: T frames, H rows, W columns. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::models {

/// The side of the window. Smaller frames have no SSIM.
inline constexpr int kSsimWindow = 11;

/// Returns the SSIM of `frames`, [T, H, W, 3], RGB in [-1, 1], and their reconstruction `decoded`,
/// which is clamped to that range. Both are f32 on the CPU. Throws Error if the frames are smaller
/// than the window, or the shapes differ. The same bits on any number of threads.
double ssim(const Tensor& frames, const Tensor& decoded);

}  // namespace vfm::models
