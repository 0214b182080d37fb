// The structural similarity of frames: a measure of reconstructions beside the PSNR.
//
// At each place where a window of 11 x 11 pixels lies in the picture, weighted by a Gaussian of
// standard deviation 1.5, of the means m, variances v and covariance c of the two windows' luma
//
//   (2 m_a m_b + C1) (2 c + C2) / ((m_a^2 + m_b^2 + C1) (v_a + v_b + C2))
//
// with C1 = 0.01^2 and C2 = 0.03^2 for luma from 0 to 1; and of that the mean over places, then
// over frames. 1 for equal frames, about 0 for unlike ones. Luma is 0.299 R + 0.587 G + 0.114 B.
// Source: Wang, Bovik, Sheikh and Simoncelli, "Image quality assessment: from error visibility to
// structural similarity" (2004). scikit-image gives the same numbers (scripts/golden/ssim.py).
// Shape letters: T frames, H rows, W columns. Thread-safety: pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tensor/tensor.h"

namespace vfm::models {

/// The side of the window: what is smaller has no SSIM.
inline constexpr int kSsimWindow = 11;

/// Of `frames` [T, H, W, 3], RGB in [-1, 1], and what became of them, which is clamped to that.
/// f32 on the CPU. Throws Error for frames smaller than the window, or of two shapes. The same bits
/// on any number of threads.
double ssim(const Tensor& frames, const Tensor& decoded);

}  // namespace vfm::models
