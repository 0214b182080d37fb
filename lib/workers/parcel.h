// A parcel is what a program and its worker (workers/worker.h) exchange: a name, "words" (numbers
// and texts), and tensors. It has this layout in the memory that both processes map:
//
//   bytes 0..7   kParcelMark          8..15  bytes of the words
//   words        JSON: {"name": "encode", "words": {...}, "tensors": [["F32", [2, 768]], ...]}
//   tensors      each on the next multiple of 64 bytes, in their order
//
// Both ends are one program on one machine, so numbers have the machine's format. The reader checks
// each size before it uses it. Thread-safety: any thread.
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

namespace vfm::workers {

inline constexpr std::uint64_t kParcelMark = 0x314c45435241505d;
/// Limits of one parcel: bytes of words, and number of tensors.
inline constexpr std::uint64_t kMostWords = std::uint64_t{64} << 20;
inline constexpr std::size_t kMostTensors = 1 << 16;

struct Parcel {
  std::string name;                     ///< the request's name; empty in an answer
  HeldJson words = HeldJson::object();  ///< numbers and texts, which must be UTF-8
  std::vector<Tensor> tensors;          ///< on the CPU
};

/// bytes_tensor() copies bytes, such as a file or a text that is not UTF-8, into a tensor [N] of
/// u8. text_of() is a view of such a tensor, which must outlive the view; it throws Error for a
/// tensor of another kind.
Tensor bytes_tensor(std::string_view bytes);
std::string_view text_of(const Tensor& bytes);

/// A parcel in its layout, ready to be written. The Parcel must outlive this.
class PackedParcel {
 public:
  /// Throws Error for words that are not UTF-8, or tensors that are not on the CPU.
  explicit PackedParcel(const Parcel& parcel);
  std::uint64_t bytes() const { return bytes_; }
  /// Writes bytes() bytes.
  void write(std::byte* to) const;

 private:
  const Parcel& parcel_;
  std::string words_;
  std::vector<std::uint64_t> places_;  // of the tensors
  std::uint64_t bytes_ = 0;
};

/// Reads the parcel in `bytes`, which another process may change during the call. Without `owner`,
/// tensors are copies. With `owner`, they are views of `bytes` that keep `owner` alive. Throws
/// Error if `bytes` are no parcel.
Parcel read_parcel(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr);

}  // namespace vfm::workers
