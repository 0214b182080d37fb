// SPDX-License-Identifier: Apache-2.0
#include "pack/gpu_canvas.h"

#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "media/decode/gpu_picture.h"
#include "tensor/device.h"

namespace vfm::pack {
namespace {

// The tables of one size take a few hundred kilobytes.
constexpr std::size_t kMostKnown = 64;

// Returns a picture of pseudo-random bytes, so that the sums of a filter differ from each other.
media::Frame pattern(const media::ScaledPart& part) {
  media::Frame frame =
      media::make_frame(media::PixelLayout::yuv420, part.part.width, part.part.height);
  frame.full_range = part.full_range;
  frame.color.matrix = static_cast<std::uint8_t>(part.matrix);
  std::uint32_t state = 1;
  for (int p = 0; p < 3; ++p)
    for (int y = 0; y < media::plane_rows(frame, p); ++y)
      for (int x = 0; x < media::plane_row_bytes(frame, p); ++x) {
        state = state * 1664525 + 1013904223;
        media::writable(frame, p)[std::ptrdiff_t{y} * frame.stride[p] + x] =
            static_cast<std::uint8_t>(state >> 24);
      }
  return frame;
}

Tensor bytes_of(const std::uint8_t* bytes, const Shape& shape) {
  return Tensor::borrow(bytes, shape, DType::u8, nullptr);
}

Tensor plane_on(Device device, const media::Frame& frame, int p) {
  const Shape shape{media::plane_rows(frame, p), frame.stride[p]};
  const Tensor room = ops::picture_room(shape, device);
  ops::put_pictures(bytes_of(frame.plane[p], shape), room);
  return room;
}

Tensor on_cpu(const Tensor& tensor) {
  const auto turn = take_turn(tensor.device());
  return tensor.to(Device::cpu);
}

}  // namespace

std::shared_ptr<const ops::PictureTables> GpuScales::find(const media::ScaledPart& part) {
  media::ScaledPart anywhere = part;
  anywhere.part.x = anywhere.part.y = 0;
  const std::lock_guard lock(mutex_);
  for (const auto& [known, tables] : known_)
    if (known == anywhere) return tables;
  std::shared_ptr<const ops::PictureTables> tables;
  try {
    tables = make(anywhere);
  } catch (const GpuError&) {
    throw;
  } catch (const Error& error) {
    log_debug("pictures are scaled on the CPU: {}", error.what());
  }
  if (!tables && !said_) {
    said_ = true;
    log_info(
        "pictures of {}x{} pixels are scaled to {}x{} on the CPU: the GPU would not give the "
        "same bytes; so it may be with others",
        part.part.width, part.part.height, part.width, part.height);
  }
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
  known_.emplace_back(anywhere, tables);
  return tables;
}

// Returns null if the pictures of the GPU and the CPU differ.
std::shared_ptr<const ops::PictureTables> GpuScales::make(const media::ScaledPart& part) const {
  auto tables = std::make_shared<const ops::PictureTables>(
      ops::picture_tables(media::picture_scale(part), device_));
  const media::Frame frame = pattern(part);
  media::RgbImage expected;
  media::Scaler().to_rgb(
      frame, {.width = part.width, .height = part.height, .bicubic = !part.averages}, expected);
  const Tensor y = plane_on(device_, frame, 0), u = plane_on(device_, frame, 1),
               v = plane_on(device_, frame, 2);
  const Tensor image = ops::picture_room({part.height, part.width, 3}, device_);
  ops::scale_picture(*tables,
                     {y.data<std::uint8_t>(), u.data<std::uint8_t>(), v.data<std::uint8_t>(),
                      frame.stride[0], frame.stride[1], 1},
                     ops::picture_place(part.width, part.height, 0, false, false), image);
  const Tensor made = on_cpu(image);
  if (std::memcmp(made.raw(), expected.pixels.data(), made.bytes()) != 0) return nullptr;
  return tables;
}

void GpuCanvas::begin(int frames, int height, int width) {
  pictures_ = {};
  pictures_ = ops::picture_room({frames, height, width, 3}, scales_.device());
}

bool GpuCanvas::draw(const media::Frame& frame, const media::ScaleOptions& scale, bool mirror,
                     int n) {
  const media::ScaledPart part = media::scaled_part(frame, scale);
  const auto tables = scales_.find(part);
  if (!tables) return false;
  const media::GpuPicture& gpu = *frame.gpu;
  const std::uint8_t* const luma = gpu.luma + part.part.y * gpu.luma_stride + part.part.x;
  // The part begins at an even column and row, so no chroma sample is cut.
  const std::uint8_t* const chroma = gpu.chroma + part.part.y / 2 * gpu.chroma_stride + part.part.x;
  ops::scale_picture(
      *tables, {luma, chroma, chroma + 1, gpu.luma_stride, gpu.chroma_stride, 2},
      ops::picture_place(part.width, part.height, scale.rotation, scale.mirror, mirror),
      pictures_.rows(n, n + 1));
  return true;
}

void GpuCanvas::put(const media::RgbImage& image, bool mirror, int n) {
  if (pictures_.size(1) != image.height || pictures_.size(2) != image.width)
    fail("a picture of {}x{} pixels among others of {}x{}", image.width, image.height,
         pictures_.size(2), pictures_.size(1));
  const Tensor room = pictures_.rows(n, n + 1);
  if (!mirror) return ops::put_pictures(bytes_of(image.pixels.data(), room.shape()), room);
  std::vector<std::uint8_t> mirrored(image.pixels.size());
  const auto width = static_cast<std::size_t>(image.width);
  for (std::size_t row = 0; row < mirrored.size(); row += 3 * width)
    for (std::size_t x = 0; x < width; ++x)
      std::memcpy(&mirrored[row + 3 * (width - 1 - x)], &image.pixels[row + 3 * x], 3);
  ops::put_pictures(bytes_of(mirrored.data(), room.shape()), room);
}

}  // namespace vfm::pack
