// The sums from which a loss is computed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vfm::train {

/// Sums over elements; the mean loss is sum / elements. They are added over batches and ranks.
struct LossSums {
  double image_sum = 0, image_elements = 0;
  double video_sum = 0, video_elements = 0;
  /// For a tokenizer in validation: the sum of PSNR (models/tokenizer.h) over clips, and the sum of
  /// SSIM (models/ssim.h) over the clips that are large enough.
  double psnr_sum = 0, clips = 0;
  double ssim_sum = 0, ssim_clips = 0;

  double elements() const { return image_elements + video_elements; }
  double mean() const { return (image_sum + video_sum) / elements(); }
  LossSums& operator+=(const LossSums& other) {
    image_sum += other.image_sum;
    image_elements += other.image_elements;
    video_sum += other.video_sum;
    video_elements += other.video_elements;
    psnr_sum += other.psnr_sum;
    clips += other.clips;
    ssim_sum += other.ssim_sum;
    ssim_clips += other.ssim_clips;
    return *this;
  }
  /// Adds the sums of one sample.
  void add(bool image, double sum, double count) {
    (image ? image_sum : video_sum) += sum;
    (image ? image_elements : video_elements) += count;
  }
};

}  // namespace vfm::train
