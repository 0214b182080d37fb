// Converts 4:2:0 pictures to pixels for a video tokenizer: cropped, scaled and converted to RGB
// with the weights of base/picture_scale.h, to the same bytes on the CPU and on a GPU.
//
// On a GPU it runs on the stream of uploads (tensor/upload.h), while the compute stream works. It
// has no gradient. Thread-safety: any thread; picture_pixels() like any other op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/picture_scale.h"
#include "tensor/tensor.h"

namespace vfm::ops {

/// Allocates memory for pictures, u8, into which scale_picture() and put_pictures() write; on a
/// GPU, upload memory.
Tensor picture_room(const Shape& shape, Device device);
/// Copies bytes from the CPU into such memory. The copy is complete at return.
void put_pictures(const Tensor& host, const Tensor& room);

/// The planes of a picture in a device's memory, kept by others: the first samples, the bytes from
/// row to row, and the bytes from one sample of chroma to the next (2 if U and V alternate). On a
/// GPU the planes are complete, or being written on CUDA's default stream.
struct PicturePlanes {
  const std::uint8_t *luma = nullptr, *u = nullptr, *v = nullptr;
  std::ptrdiff_t luma_stride = 0, chroma_stride = 0;
  int chroma_step = 1;
};

/// The weights of a picture on a device.
struct PictureTables {
  PictureScale numbers;
  /// [n] i32: `first` and `weights` of luma_x, chroma_x, luma_y, chroma_y, one after the other.
  Tensor taps;
};
/// Throws Error if the numbers are inconsistent.
PictureTables picture_tables(const PictureScale& numbers, Device device);

/// The place of a result in an image: pixel (x, y) goes to byte first + x * step_x + y * step_y and
/// the two bytes after it.
struct PicturePlace {
  std::int64_t first = 0, step_x = 0, step_y = 0;
};
/// Returns the place for a picture of `width` x `height` in a packed RGB image. The picture is
/// mirrored left to right if `mirror`, then rotated clockwise by `degrees`, then mirrored if
/// `mirror_after`. After a rotation by 90 or 270 degrees the image is `height` x `width`. Throws
/// Error unless `degrees` is 0, 90, 180 or 270.
PicturePlace picture_place(int width, int height, int degrees, bool mirror, bool mirror_after);

/// Writes the scaled picture into `image`, u8 [H, W, 3], on the device of the tables. Returns when
/// the planes have been read and the image is complete. Throws Error if sizes do not fit.
void scale_picture(const PictureTables& tables, const PicturePlanes& planes,
                   const PicturePlace& place, const Tensor& image);

/// Returns u8 bytes as f32 pixels in [-1, 1], in the same shape: b / 127.5 - 1.
Tensor picture_pixels(const Tensor& bytes);

}  // namespace vfm::ops
