// Reads GGUF, the file format of llama.cpp, which has settings and tensors. Tensors may be
// quantised to a few bits.
//
//   4 bytes   "GGUF"; u32 version, 2 or 3; u64 number of tensors; u64 number of settings
//   settings  each a name, a u32 type and a value; a text is a u64 length and its bytes
//   tensors   each a name; u32 number of dimensions; the dimensions, u64 each, the fastest first;
//             u32 type; u64 offset of the data, a multiple of the alignment
//   the data  from the next multiple of the alignment on ("general.alignment", else 32)
// All numbers are little endian.
//
// A tensor's dtype is F32, F16, BF16, or the name of a block format (base/block_format.h). All
// other types are refused. The fastest dimension (whose elements are adjacent) is the last in
// `shape`. A setting "comfy.gguf.orig_shape.NAME", a list of integers, is the shape of the tensor
// NAME, which other programs store with fewer dimensions. Settings that are floats are ignored.
// Sources: github.com/ggml-org/ggml docs/gguf.md; loader.py of city96's ComfyUI-GGUF.
// Thread-safety: parse and const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/tensor_set.h"

namespace vfm::io {

/// A setting that is a list, as it is stored.
struct GgufList {
  std::uint32_t type = 0;  ///< Of its values, as in the file: 5 for i32, 6 for f32, 8 for texts.
  std::uint64_t count = 0;
  std::span<const std::byte> data;  ///< Not owned.

  static constexpr std::uint32_t kI32 = 5, kF32 = 6, kText = 8;
  /// The values of a list of i32 or f32. Throws Error, which names `what`, for another type.
  std::vector<std::int32_t> integers(std::string_view what) const;
  std::vector<float> floats(std::string_view what) const;
  std::vector<std::string_view> texts(std::string_view what) const;
};

struct GgufContents {
  std::vector<TensorView> tensors;             ///< Tensors in the order of the file.
  std::map<std::string, std::string> texts;    ///< Settings that are texts.
  std::map<std::string, std::int64_t> counts;  ///< Settings that are integers or booleans.
  std::map<std::string, GgufList> lists;       ///< Settings that are lists.
};

/// Parses a whole file. The tensors are views of `bytes`. Throws Error, which names `what`, for
/// invalid contents. Examples are a text or integer that is set twice, a shape that is not a whole
/// number of blocks, another shape that has not as many numbers, data that overlap or exceed the
/// file, and more than 65,536 settings or tensors. Memory grows at most in proportion to the file's
/// size. The bytes may be hostile. Pure; fuzzed.
GgufContents parse_gguf(std::span<const std::byte> bytes, std::string_view what);

/// A memory-mapped GGUF file.
class GgufFile final : public TensorSet {
 public:
  /// Throws Error if the file does not exist, if two tensors have the same name, or if parse_gguf()
  /// refuses the file.
  explicit GgufFile(const std::string& file);

  const std::map<std::string, std::string>& texts() const { return texts_; }
  const std::map<std::string, std::int64_t>& counts() const { return counts_; }
  const std::map<std::string, GgufList>& lists() const { return lists_; }
  void release(const TensorView& tensor) const override { map_.release(tensor.data); }

 private:
  MappedFile map_;
  std::map<std::string, std::string> texts_;
  std::map<std::string, std::int64_t> counts_;
  std::map<std::string, GgufList> lists_;
};

}  // namespace vfm::io
