// Software in the place of a GPU's decoder that leaves its pictures there
// (media/decode/gpu_picture.h): they are NV12 in whatever memory `Memory` gives, so that all
// behind it is tested without a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "media/decode/gpu_picture.h"
#include "media/decode/hardware_decoder.h"

namespace vfm::test {

/// A copy of some bytes where the picture is to be, and what keeps it.
struct GpuBytes {
  const std::uint8_t* at = nullptr;
  std::shared_ptr<const void> owner;
};
using GpuMemory = std::function<GpuBytes(const std::vector<std::uint8_t>&)>;

inline GpuBytes in_host_memory(const std::vector<std::uint8_t>& bytes) {
  auto copy = std::make_shared<std::vector<std::uint8_t>>(bytes);
  return {copy->data(), copy};
}

class PlayedPicture final : public media::GpuPicture {
 public:
  /// With `left` and `top` more columns and rows, which are even, before the picture.
  PlayedPicture(const media::Frame& frame, const GpuMemory& memory, int left = 2, int top = 4)
      : frame_(frame) {
    const int width = frame.width + left, height = frame.height + top;
    const int stride = (width + 1) / 2 * 2 + 10, rows = height + (height + 1) / 2;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(stride * rows), 0x77);
    std::uint8_t* const first = bytes.data() + top * stride + left;
    std::uint8_t* const second = bytes.data() + (height + top / 2) * stride + left;
    for (int p = 0; p < 3; ++p)
      for (int y = 0; y < media::plane_rows(frame, p); ++y)
        for (int x = 0; x < media::plane_row_bytes(frame, p); ++x) {
          const std::uint8_t sample = frame.plane[p][std::ptrdiff_t{y} * frame.stride[p] + x];
          if (p == 0)
            first[y * stride + x] = sample;
          else
            second[y * stride + 2 * x + p - 1] = sample;
        }
    bytes_ = memory(bytes);
    luma = bytes_.at + (first - bytes.data()), chroma = bytes_.at + (second - bytes.data());
    luma_stride = chroma_stride = stride;
  }
  media::Frame fetch(const media::Frame& facts) const override {
    media::Frame copy = frame_;
    media::copy_facts(facts, copy);
    return copy;
  }

 private:
  media::Frame frame_;
  GpuBytes bytes_;
};

/// Keeps the first `pictures` of 8 bits, gives the others as the software has them, and none after
/// `all` of them.
class GpuPlayer final : public media::HardwareDecoder {
 public:
  explicit GpuPlayer(GpuMemory memory, int pictures = 1 << 30, int all = 1 << 30)
      : memory_(std::move(memory)), keeps_(pictures), left_(all) {}
  bool attach(AVCodecContext& codec, int) const override {
    return codec.pix_fmt == AV_PIX_FMT_YUV420P;
  }
  media::AvFramePtr fetch(media::AvFramePtr picture) const override {
    return left_-- > 0 ? std::move(picture) : nullptr;
  }
  std::shared_ptr<const media::GpuPicture> keep(media::AvFramePtr& picture) const override {
    if (kept >= keeps_ || left_ <= 0) return nullptr;
    ++kept, --left_;
    const media::Frame frame = media::FrameImporter().import(std::exchange(picture, nullptr));
    return std::make_shared<PlayedPicture>(frame, memory_);
  }

  mutable int kept = 0;

 private:
  GpuMemory memory_;
  int keeps_;
  mutable int left_;
};

}  // namespace vfm::test
