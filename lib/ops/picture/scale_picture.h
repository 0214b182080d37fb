// Pictures of 4:2:0 as pixels for a video tokenizer: cut out, scaled and turned to RGB by numbers
// (base/picture_scale.h), to the same bytes on the CPU and on a GPU.
//
// On a GPU it runs on the stream of uploads (tensor/upload.h), beside what is computed. No
// backward. Thread-safety: any thread, but for picture_pixels(), which is an op as any other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/picture_scale.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// Memory for pictures, u8, which scale_picture() and put_pictures() write; on a GPU that of
/// uploads.
Tensor picture_room(const Shape& shape, Device device);
/// Copies bytes of the CPU into such memory; they are there at return.
void put_pictures(const Tensor& host, const Tensor& room);

/// The planes of a picture, in the memory of a device that others keep: first samples, bytes from
/// row to row, and from one sample of chroma to the next (2: U and V by turns). On a GPU they are
/// there, or are being written on the stream that CUDA takes where none is named.
struct PicturePlanes {
  const std::uint8_t *luma = nullptr, *u = nullptr, *v = nullptr;
  std::ptrdiff_t luma_stride = 0, chroma_stride = 0;
  int chroma_step = 1;
};

/// The numbers on a device.
struct PictureTables {
  PictureScale numbers;
  /// [n] i32: first and weights of luma_x, chroma_x, luma_y, chroma_y, one behind the other.
  Tensor taps;
};
/// Throws Error for numbers that do not belong together.
PictureTables picture_tables(const PictureScale& numbers, Device device);

/// Where result (x, y) goes in an image: byte first + x * step_x + y * step_y, and the two behind
/// it.
struct PicturePlace {
  std::int64_t first = 0, step_x = 0, step_y = 0;
};
/// In the image of a picture of `width` x `height` that is mirrored left to right if `mirror`, then
/// turned clockwise by so many degrees, then mirrored if `mirror_after`: packed RGB. The image is
/// `height` x `width` after a quarter turn. Throws Error for an angle that is no quarter.
PicturePlace picture_place(int width, int height, int degrees, bool mirror, bool mirror_after);

/// Writes the scaled picture into `image`, u8 [H, W, 3], on the device of the tables; returns when
/// the planes are read and the image is there. Throws Error where the sizes do not fit.
void scale_picture(const PictureTables& tables, const PicturePlanes& planes,
                   const PicturePlace& place, const Tensor& image);

/// Bytes u8 as pixels f32 in [-1, 1] of the same shape: b / 127.5 - 1.
Tensor picture_pixels(const Tensor& bytes);

}  // namespace vfm::ops
