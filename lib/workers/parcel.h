// A parcel is a message between a program and its worker (workers/worker.h). A parcel has a name,
// "words" (numbers and texts), and tensors. It has this layout in the memory that both processes
// map:
//
//   bytes 0..7   kParcelMark          8..15  size of the words in bytes
//   words        JSON: {"name": "encode", "words": {...}, "tensors": [["F32", [2, 768]], ...]}
//   tensors      each on the next multiple of 64 bytes, in their order
//
// Numbers have the machine's format. Thread-safety: any thread.
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
/// The largest number of bytes of words in a parcel, and the largest number of tensors.
inline constexpr std::uint64_t kMostWords = std::uint64_t{64} << 20;
inline constexpr std::size_t kMostTensors = 1 << 16;

struct Parcel {
  std::string name;                     ///< Name of a request; empty in an answer.
  HeldJson words = HeldJson::object();  ///< Numbers and texts. Texts must be UTF-8.
  std::vector<Tensor> tensors;          ///< Tensors on the CPU.
};

/// bytes_tensor() copies bytes, such as a file, into a tensor [N] of u8. text_of() returns a view
/// of such a tensor. The tensor must outlive the view. text_of() throws Error for a tensor of
/// another type or shape.
Tensor bytes_tensor(std::string_view bytes);
std::string_view text_of(const Tensor& bytes);

/// A parcel that is ready to be written. The Parcel must outlive this object.
class PackedParcel {
 public:
  /// Throws Error if words are not UTF-8, or if a tensor is not on the CPU.
  explicit PackedParcel(const Parcel& parcel);
  std::uint64_t bytes() const { return bytes_; }
  /// Writes bytes() bytes.
  void write(std::byte* to) const;

 private:
  const Parcel& parcel_;
  std::string words_;
  std::vector<std::uint64_t> places_;  // offsets of the tensors
  std::uint64_t bytes_ = 0;
};

/// Reads the parcel in `bytes`, which another process may change during the call. Without `owner`,
/// the tensors are copies. With `owner`, the tensors are views of `bytes` that keep `owner` alive.
/// Throws Error if `bytes` do not hold a valid parcel.
Parcel read_parcel(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr);

}  // namespace vfm::workers
