// SPDX-License-Identifier: Apache-2.0
#include "ops/optim/block_codes.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/optim/optim_kernels.h"
#include "ops/run.h"

namespace vfm::ops {
namespace {

constexpr int kDecades = 7;

/// The middles of equal parts of [0.1, 1], smaller by a decade for each decade; and 0 and 1.
std::array<float, 256> make_numbers(bool with_sign) {
  std::array<float, 256> numbers{};
  std::size_t made = 0;
  for (int decade = 0; decade < kDecades; ++decade) {
    const int parts = 1 << (with_sign ? decade : decade + 1);
    for (int part = 0; part < parts; ++part) {
      const double middle = 0.1 + 0.9 * (part + 0.5) / parts;
      const auto number = static_cast<float>(middle * std::pow(10.0, decade - (kDecades - 1)));
      numbers.at(made++) = number;
      if (with_sign) numbers.at(made++) = -number;
    }
  }
  numbers.at(made++) = 0;
  numbers.at(made++) = 1;
  std::ranges::sort(numbers);
  return numbers;
}

const float* limits_of_codes(CodeRange range) {
  const auto make = [](CodeRange of) {
    const std::array<float, 256>& numbers = numbers_of_codes(of);
    std::array<float, 255> limits{};
    for (std::size_t i = 0; i < limits.size(); ++i)
      limits[i] = static_cast<float>((double{numbers[i]} + double{numbers[i + 1]}) / 2);
    return limits;
  };
  static const std::array<float, 255> with_sign = make(CodeRange::signed_unit),
                                      without = make(CodeRange::unit);
  return range == CodeRange::signed_unit ? with_sign.data() : without.data();
}

/// Checks sizes and types, and finds which blocks have elements of the part. `codes` may be
/// undefined.
BlocksOfPart blocks_of(const PartOfWhole& part, const Tensor& scales, const Tensor& numbers,
                       const Tensor& codes = {}) {
  const auto fits = [&](const Tensor& tensor, DType type, std::int64_t elements) {
    return tensor.dtype() == type && tensor.elements() == elements &&
           tensor.device() == scales.device();
  };
  if (!fits(scales, DType::f32, code_blocks(part.whole)) ||
      !fits(numbers, DType::f32, part.count) ||
      (codes.defined() && !fits(codes, DType::u8, part.count)))
    fail("{} scales for blocks of {} elements, of which a rank has {}: other tensors are given",
         scales.elements(), part.whole, part.count);
  if (part.count == 0) return {part, 0, 0};
  if (part.length < 1 || part.stride < part.length || part.begin < 0 || part.first < 0)
    fail("a part of runs of {} elements, one every {}", part.length, part.stride);
  const auto place = [&](std::int64_t element) {
    const std::int64_t at = part.begin + element;
    return part.first + at / part.length * part.stride + at % part.length;
  };
  const std::int64_t last = place(part.count - 1);
  if (last >= part.whole) fail("element {} of a whole of {}", last, part.whole);
  return {part, place(0) / kCodeBlock, last / kCodeBlock + 1};
}

}  // namespace

const std::array<float, 256>& numbers_of_codes(CodeRange range) {
  static const std::array<float, 256> with_sign = make_numbers(true), without = make_numbers(false);
  return range == CodeRange::signed_unit ? with_sign : without;
}

void decode_blocks(const Tensor& codes, const Tensor& scales, CodeRange range,
                   const PartOfWhole& part, const Tensor& numbers) {
  const BlocksOfPart blocks = blocks_of(part, scales, numbers, codes);
  VFM_RUN(Touching(codes, numbers), decode_blocks, codes.data<std::uint8_t>(), scales.data<float>(),
          numbers_of_codes(range).data(), blocks, numbers.data<float>());
}

void scales_of_blocks(const Tensor& numbers, const PartOfWhole& part, const Tensor& scales) {
  const BlocksOfPart blocks = blocks_of(part, scales, numbers);
  VFM_RUN(Touching(numbers), scales_of_blocks, numbers.data<float>(), blocks, scales.data<float>());
}

void encode_blocks(const Tensor& numbers, const Tensor& scales, CodeRange range,
                   const PartOfWhole& part, const Tensor& codes) {
  const BlocksOfPart blocks = blocks_of(part, scales, numbers, codes);
  VFM_RUN(Touching(codes, numbers), encode_blocks, numbers.data<float>(), scales.data<float>(),
          limits_of_codes(range), blocks, codes.data<std::uint8_t>());
}

void greater_in_place(const Tensor& target, const Tensor& other) {
  if (target.elements() != other.elements() || target.device() != other.device() ||
      target.dtype() != DType::f32 ||
      other.dtype() != DType::f32)
    fail("the greater of {} {} and {} {}", dtype_name(target.dtype()), to_string(target.shape()),
         dtype_name(other.dtype()), to_string(other.shape()));
  VFM_RUN(Touching(target, target, other), greater_in_place, target.data<float>(),
          other.data<float>(), target.elements());
}

}  // namespace vfm::ops
