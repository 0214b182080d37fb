// Scales the pictures of a clip on the GPU that decodes it and runs the tokenizer, so that no frame
// is copied to the system's memory and back. The bytes are the same as from media::Scaler.
//
// Before pictures of a new size and colour format are scaled on the GPU, a test pattern is scaled
// both ways. If a byte differs (FFmpeg may round differently), the CPU scales pictures of this size
// and format. Scaling by the CPU is logged once.
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

/// A cache of scaling tables, one for each size and colour format so far. Thread-safety: any
/// thread.
class CardScales {
 public:
  /// `device`: the device where pictures are made. If `draws` is true, frames may be on `device`,
  /// too; else they are only in the system's memory.
  explicit CardScales(Device device, bool draws = true) : device_(device), draws_(draws) {}
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
class CardCanvas final : public data::ClipCanvas {
 public:
  /// `scales` must outlive this.
  explicit CardCanvas(CardScales& scales) : scales_(scales) {}
  void begin(int frames, int height, int width) override;
  bool draws() const override { return scales_.draws(); }
  bool draw(const media::Frame& frame, const media::ScaleOptions& scale, bool mirror,
            int n) override;
  void put(const media::RgbImage& image, bool mirror, int n) override;
  /// Returns the clip, u8 [T, H, W, 3] on the device.
  const Tensor& pictures() const { return pictures_; }

 private:
  CardScales& scales_;
  Tensor pictures_;
};

}  // namespace vfm::pack
