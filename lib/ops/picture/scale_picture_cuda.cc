// SPDX-License-Identifier: Apache-2.0
#include "kernels/picture.h"
#include "ops/picture/scale_picture_kernels.h"
#include "tensor/device.h"
#include "tensor/device_cuda.h"
#include "tensor/upload.h"

namespace vfm::ops::cuda {
namespace {

kernels::PictureTaps taps_of(const PictureParts::Part& part) {
  return {part.first, part.weights, part.size};
}

}  // namespace

Tensor picture_taps(const std::vector<std::int32_t>& taps) {
  Upload upload;
  const Tensor copy = upload.copy(
      Tensor::borrow(taps.data(), {static_cast<std::int64_t>(taps.size())}, DType::i32, nullptr));
  finish_uploads();
  return copy;
}

Tensor picture_room(const Shape& shape) {
  return upload_room(shape, DType::u8);
}

void put_pictures(const Tensor& host, const Tensor& room) {
  upload_into(room, host);
  finish_uploads();
}

void scale_picture(const PictureTables& tables, const PicturePlanes& planes,
                   const PicturePlace& place, const Tensor& image) {
  await_unnamed_stream();
  const PictureScale& s = tables.numbers;
  const PictureParts parts(tables);
  const std::int64_t rows = s.height, chroma_rows = (rows + 1) / 2, width = s.to_width;
  const Tensor lines = upload_room({(rows + 2 * chroma_rows) * width}, DType::i16);
  auto* const y = lines.data<std::int16_t>();
  auto *const u = y + rows * width, *const v = u + chroma_rows * width;
  const auto chroma = [&](const std::uint8_t* samples, std::int16_t* to) {
    return kernels::PicturePlane{samples,
                                 planes.chroma_stride,
                                 planes.chroma_step,
                                 static_cast<int>(chroma_rows),
                                 taps_of(parts.chroma_x),
                                 to};
  };
  const kernels::PictureRows in_rows{
      {{planes.luma, planes.luma_stride, 1, s.height, taps_of(parts.luma_x), y},
       chroma(planes.u, u),
       chroma(planes.v, v)},
      s.to_width};
  check_gpu(kernels::picture_rows(in_rows, copy_stream()), "scale rows of a picture");
  kernels::PictureColours colours;
  colours.lines[0] = y, colours.lines[1] = u, colours.lines[2] = v;
  colours.luma = taps_of(parts.luma_y), colours.chroma = taps_of(parts.chroma_y);
  colours.width = s.to_width, colours.height = s.to_height;
  colours.luma_offset = s.luma_offset, colours.luma_gain = s.luma_gain;
  colours.red_v = s.red_v, colours.green_u = s.green_u;
  colours.green_v = s.green_v, colours.blue_u = s.blue_u;
  colours.rgb = image.data<std::uint8_t>() + place.first;
  colours.step_x = place.step_x, colours.step_y = place.step_y;
  check_gpu(kernels::picture_colours(colours, copy_stream()), "scale a picture");
  finish_uploads();
}

void picture_pixels(const Tensor& bytes, const Tensor& pixels) {
  check_gpu(kernels::picture_pixels(bytes.data<std::uint8_t>(), pixels.data<float>(),
                                    bytes.elements(), compute_stream()),
            "make pixels of bytes");
}

}  // namespace vfm::ops::cuda
