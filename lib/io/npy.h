// Reads and writes NumPy's .npy files. Writes version 1.0, and reads versions 1.0, 2.0 and 3.0.
// Arrays must be in C order. The dtypes are <f2 <f4 <f8 |u1 |i1 <i2 <u2 <i4 <i8. Source:
// numpy/lib/format.py documentation, NEP 1.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vfm::io {

struct NpyHeader {
  std::string dtype;                ///< Type as in the file, such as "<f2".
  std::vector<std::int64_t> shape;  ///< Dimensions in C order. Empty for a scalar.
  std::size_t data_offset = 0;      ///< Offset of the data. A multiple of 64 in files of vfm.

  std::int64_t elements() const;
  std::size_t item_size() const;
};

/// Parses the header of `bytes`, and checks that the data have the size that the header gives.
/// Throws Error, which names `what`. The bytes may be hostile. Pure; fuzzed.
NpyHeader parse_npy(std::string_view bytes, std::string_view what);

/// Returns the bytes of a .npy file.
std::string make_npy(std::string_view dtype, const std::vector<std::int64_t>& shape,
                     const void* data, std::size_t bytes);
/// Returns the bytes of a '<f2' file. Values are rounded to the nearest half, ties to even.
std::string make_npy_half(const std::vector<std::int64_t>& shape, std::span<const float> values);
/// Throws Error if a value is not finite, or outside the range of halves. The message begins with
/// `what`, such as "its latent", and names the reason.
void check_halves(std::span<const float> values, std::string_view what);
std::string make_npy_float(const std::vector<std::int64_t>& shape, std::span<const float> values);

/// Returns the data of a file of an integer type.
std::vector<std::int64_t> npy_integers(std::string_view bytes, std::string_view what);
/// Returns the data of a '<f2', '<f4' or '<f8' file as float32.
std::vector<float> npy_floats(std::string_view bytes, std::string_view what);

}  // namespace vfm::io
