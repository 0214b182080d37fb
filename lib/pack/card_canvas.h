// The pictures of a clip, made on the GPU that decodes it and that the tokenizer computes on: no
// frame is copied to the system's memory and back. They are the bytes that media::Scaler makes.
//
// That is proved, not hoped for: before pictures of a new size and colour are made there, a pattern
// is scaled both ways, and where one byte differs, as with an FFmpeg that rounds otherwise, such
// pictures are left to the CPU, which is said once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/clip_pixels.h"
#include "media/scale_rule.h"
#include "ops/picture/scale_picture.h"
#include "tensor/tensor.h"

namespace vfm::pack {

/// The numbers of all sizes that were met. Thread-safety: any thread.
class CardScales {
 public:
  /// `device`: where the pictures are made. `draws`: they are made of frames that are there, too;
  /// else of those of the system's memory alone.
  explicit CardScales(Device device, bool draws = true) : device_(device), draws_(draws) {}
  Device device() const { return device_; }
  bool draws() const { return draws_; }
  /// Null: on the CPU. Throws GpuError.
  std::shared_ptr<const ops::PictureTables> find(const media::ScaledPart& part);

 private:
  std::shared_ptr<const ops::PictureTables> make(const media::ScaledPart& part) const;

  Device device_;
  bool draws_;
  std::mutex mutex_;
  std::vector<std::pair<media::ScaledPart, std::shared_ptr<const ops::PictureTables>>> known_;
  bool said_ = false;
};

/// One clip at a time. Thread-safety: one thread at a time.
class CardCanvas final : public data::ClipCanvas {
 public:
  /// `scales` must outlive it.
  explicit CardCanvas(CardScales& scales) : scales_(scales) {}
  void begin(int frames, int height, int width) override;
  bool draws() const override { return scales_.draws(); }
  bool draw(const media::Frame& frame, const media::ScaleOptions& scale, bool mirror,
            int n) override;
  void put(const media::RgbImage& image, bool mirror, int n) override;
  /// The clip, u8 [T, H, W, 3] on the device.
  const Tensor& pictures() const { return pictures_; }

 private:
  CardScales& scales_;
  Tensor pictures_;
};

}  // namespace vfm::pack
