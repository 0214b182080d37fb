// Scales the pictures of a clip on the GPU that decodes the clip and runs the tokenizer. The
// pictures are equal to those of media::Scaler, byte by byte.
//
// For each new size and colour format, a test pattern is first scaled on the GPU and on the CPU. If
// the results differ, the CPU scales pictures of this size and format, and a message is logged
// once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/clip_pixels.h"
#include "media/colour/scale_rule.h"
#include "ops/picture/scale_picture.h"
#include "tensor/tensor.h"

namespace vfm::pack {

/// A cache of scaling tables for each size and colour format. Thread-safety: any thread.
class GpuScales {
 public:
  /// Makes an empty cache for pictures on `device`. If `draws` is true, frames may also be in the
  /// memory of `device`.
  explicit GpuScales(Device device, bool draws = true) : device_(device), draws_(draws) {}
  Device device() const { return device_; }
  bool draws() const { return draws_; }
  /// Returns the tables for `part`, or null if the CPU must scale. Throws GpuError.
  std::shared_ptr<const ops::PictureTables> find(const media::ScaledPart& part);

 private:
  std::shared_ptr<const ops::PictureTables> make(const media::ScaledPart& part) const;

  Device device_;
  bool draws_;
  std::mutex mutex_;
  std::vector<std::pair<media::ScaledPart, std::shared_ptr<const ops::PictureTables>>> known_;
  bool said_ = false;
};

/// Collects the pictures of one clip at a time. Thread-safety: one thread at a time.
class GpuCanvas final : public data::ClipCanvas {
 public:
  /// `scales` must outlive the canvas.
  explicit GpuCanvas(GpuScales& scales) : scales_(scales) {}
  void begin(int frames, int height, int width) override;
  bool draws() const override { return scales_.draws(); }
  bool draw(const media::Frame& frame, const media::ScaleOptions& scale, bool mirror,
            int n) override;
  void put(const media::RgbImage& image, bool mirror, int n) override;
  /// Returns the clip, u8 [T, H, W, 3] on the device.
  const Tensor& pictures() const { return pictures_; }

 private:
  GpuScales& scales_;
  Tensor pictures_;
};

}  // namespace vfm::pack
