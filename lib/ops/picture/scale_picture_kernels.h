// The kernels behind scale_picture.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.h"
#include "ops/picture/scale_picture.h"

namespace vfm::ops {

/// [n] i32 on the device.
VFM_KERNEL(Tensor, picture_taps, const std::vector<std::int32_t>& taps)
VFM_KERNEL(Tensor, picture_room, const Shape& shape)
VFM_KERNEL(void, put_pictures, const Tensor& host, const Tensor& room)
VFM_KERNEL(void, scale_picture, const PictureTables& tables, const PicturePlanes& planes,
           const PicturePlace& place, const Tensor& image)
VFM_KERNEL(void, picture_pixels, const Tensor& bytes, const Tensor& pixels)

/// The addresses of the four parts of PictureTables::taps.
struct PictureParts {
  explicit PictureParts(const PictureTables& tables);
  struct Part {
    const std::int32_t* first;
    const std::int32_t* weights;
    int size;
  };
  Part luma_x, chroma_x, luma_y, chroma_y;
};

}  // namespace vfm::ops
