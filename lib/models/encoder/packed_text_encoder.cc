// SPDX-License-Identifier: Apache-2.0
#include "models/encoder/packed_text_encoder.h"

#include <iterator>
#include <utility>

#include "tensor/device.h"

namespace vfm::models {
namespace {

/// Tokens that go through the model at once. More would share the reading of the weights among
/// more, but hold more memory.
constexpr std::size_t kPackTokens = 4096;

}  // namespace

text::TokenEmbeddings PackedTextEncoder::encode(std::string_view utf8) const {
  return std::move(encode_all({std::string(utf8)}).front());
}

std::vector<text::TokenEmbeddings> PackedTextEncoder::encode_all(
    const std::vector<std::string>& texts) const {
  std::vector<text::TokenEmbeddings> all;
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> lengths;
  const auto encode_waiting = [&] {
    // In this order: who holds the GPU's turn may encode.
    const auto turn = take_turn(device_);
    const std::lock_guard one(mutex_);  // of it all threads compute
    std::vector<text::TokenEmbeddings> pack = encode_pack(ids, lengths);
    std::move(pack.begin(), pack.end(), std::back_inserter(all));
    ids.clear();
    lengths.clear();
  };
  for (const std::string& utf8 : texts) {
    const std::vector<std::int32_t> found = tokens(utf8);
    if (!ids.empty() && ids.size() + found.size() > kPackTokens) encode_waiting();
    ids.insert(ids.end(), found.begin(), found.end());
    lengths.push_back(static_cast<std::int64_t>(found.size()));
  }
  encode_waiting();
  return all;
}

}  // namespace vfm::models
