// What text encoders with weights share: texts go through the model in packs of a few thousand
// tokens, one pack at a time.
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
  /// What the model gets of a text.
  virtual std::vector<std::int32_t> tokens(std::string_view utf8) const = 0;
  /// `ids` of texts, one after the other, each as long as `lengths` has it. Called by one thread at
  /// a time, which has the GPU's turn.
  virtual std::vector<text::TokenEmbeddings> encode_pack(
      std::span<const std::int32_t> ids, std::span<const std::int64_t> lengths) const = 0;

 private:
  Device device_;
  mutable std::mutex mutex_;
};

}  // namespace vfm::models
