// Base of text encoders with weights: texts go through the model in packs of a few thousand tokens,
// one pack at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"
#include "text/encoder.h"

namespace vfm::models {

class PackedTextEncoder : public text::TextEncoder {
 public:
  text::TokenEmbeddings encode(std::string_view utf8) const final;
  std::vector<text::TokenEmbeddings> encode_all(const std::vector<std::string>& texts) const final;

 protected:
  explicit PackedTextEncoder(Device device) : device_(device) {}
  /// The token ids of a text.
  virtual std::vector<std::int32_t> tokens(std::string_view utf8) const = 0;
  /// Encodes texts whose `ids` lie one after another; `lengths` has the number of ids of each.
  /// Called by one thread at a time, which has the GPU's turn.
  virtual std::vector<text::TokenEmbeddings> encode_pack(
      std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const = 0;

 private:
  Device device_;
  mutable std::mutex mutex_;
};

}  // namespace vfm::models
