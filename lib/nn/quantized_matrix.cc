// SPDX-License-Identifier: Apache-2.0
#include "nn/quantized_matrix.h"

namespace vfm::nn {

QuantizedMatrix::QuantizedMatrix(const Shape& shape, DType dtype, Device device)
    : dtype_(dtype),
      device_(device),
      waiting_(device == Device::meta ? Tensor::name(shape, dtype, device) : Tensor(shape, dtype)) {
}

Tensor QuantizedMatrix::get() const {
  if (waiting_.defined() && device_ == Device::meta)
    return Tensor(waiting_.shape(), dtype_, device_);
  if (waiting_.defined()) return waiting_.to(device_);
  return ops::dequantize_rows(shards_ ? ops::QuantizedRows{shards_->get(), rows_.scales} : rows_,
                              dtype_);
}

ops::QuantizedRows quantize_rows_together(const Tensor& x, dist::Group* ranks,
                                          ops::RowFormat format) {
  Tensor largest = ops::largest_of_rows(x);
  if (ranks != nullptr && ranks->size() > 1) {
    const Tensor all({ranks->size(), x.size(0)}, DType::i32, x.device());
    ranks->all_gather(largest.reshape({1, x.size(0)}), all).wait();
    largest = all;
  }
  return ops::quantize_rows(x, largest, format);
}

}  // namespace vfm::nn
