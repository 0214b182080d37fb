// What a program and its worker (cards/worker.h) hand to each other: a name, a few words, and
// tensors; and how that lies in the memory that both map.
//
//   bytes 0..7   kParcelMark          8..15  bytes of the words
//   words        JSON: {"name": "encode", "words": {...}, "tensors": [["F32", [2, 768]], ...]}
//   tensors      each on the next multiple of 64 bytes, in their order
//
// Both ends are one program on one machine, so numbers are as they are in memory. Whoever reads
// believes nothing: each size is checked before it is used. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/held_json.h"
#include "tensor/tensor.h"

namespace vfm::cards {

inline constexpr std::uint64_t kParcelMark = 0x314c45435241505d;
/// Of one parcel, at most.
inline constexpr std::uint64_t kMostWords = std::uint64_t{64} << 20;
inline constexpr std::size_t kMostTensors = 1 << 16;

struct Parcel {
  std::string name;                     ///< what is asked for; of an answer empty
  HeldJson words = HeldJson::object();  ///< numbers and texts, which must be UTF-8
  std::vector<Tensor> tensors;          ///< on the CPU
};

/// Bytes as a tensor [N] of u8, which are copied, and what such a tensor holds, which must outlive
/// it: for texts of any bytes, and files. text_of() throws Error for another tensor.
Tensor bytes_tensor(std::string_view bytes);
std::string_view text_of(const Tensor& bytes);

/// A parcel that is to be written. It must outlive this.
class PackedParcel {
 public:
  /// Throws Error for words that are no UTF-8, or tensors that are not on the CPU.
  explicit PackedParcel(const Parcel& parcel);
  std::uint64_t bytes() const { return bytes_; }
  /// bytes() of them.
  void write(std::byte* to) const;

 private:
  const Parcel& parcel_;
  std::string words_;
  std::vector<std::uint64_t> places_;  // of the tensors
  std::uint64_t bytes_ = 0;
};

/// What lies in `bytes`, which others may change meanwhile: a copy, whose tensors are views of
/// `bytes` with `owner` where that is given. Throws Error for what is no parcel.
Parcel read_parcel(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr);

}  // namespace vfm::cards
