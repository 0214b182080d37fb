// SPDX-License-Identifier: Apache-2.0
#include "workers/parcel.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace vfm::workers {
namespace {

constexpr std::uint64_t kHead = 16, kTensorAlign = 64;
constexpr std::uint64_t kMostSize = std::uint64_t{1} << 40;
constexpr const char* kParcelWords = "what a worker or its program says";

std::uint64_t aligned(std::uint64_t at) {
  return (at + kTensorAlign - 1) / kTensorAlign * kTensorAlign;
}

std::optional<DType> dtype_of(const Json& name) {
  if (!name.is_string()) return std::nullopt;
  constexpr std::array kTypes{DType::f32, DType::bf16, DType::f16, DType::i16,
                              DType::i32, DType::i64,  DType::u8,  DType::f8e4m3};
  const auto found = std::ranges::find(kTypes, name.get<std::string>(), dtype_name);
  return found == kTypes.end() ? std::nullopt : std::optional(*found);
}

/// Returns nullopt if `sizes` are no shape of a tensor of at most `room` bytes.
std::optional<Shape> shape_of(const Json& sizes, DType dtype, std::uint64_t room) {
  if (!sizes.is_array() || sizes.size() > 16) return std::nullopt;
  Shape shape;
  for (const Json& size : sizes) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > kMostSize) return std::nullopt;
    shape.push_back(size.get<std::int64_t>());
  }
  std::uint64_t bytes = dtype_size(dtype);
  if (std::ranges::find(shape, 0) != shape.end()) return shape;
  for (const std::int64_t size : shape) {
    const auto n = static_cast<std::uint64_t>(size);
    if (bytes > room / n) return std::nullopt;
    bytes *= n;
  }
  return bytes <= room ? std::optional(std::move(shape)) : std::nullopt;
}

}  // namespace

Tensor bytes_tensor(std::string_view bytes) {
  Tensor tensor({static_cast<std::int64_t>(bytes.size())}, DType::u8);
  std::copy(bytes.begin(), bytes.end(), tensor.data<char>());
  return tensor;
}

std::string_view text_of(const Tensor& bytes) {
  if (!bytes.defined() || bytes.dtype() != DType::u8 || bytes.device() != Device::cpu)
    fail("a tensor that stands for bytes has another type");
  return {bytes.data<char>(), bytes.bytes()};
}

PackedParcel::PackedParcel(const Parcel& parcel) : parcel_(parcel) {
  Json tensors = Json::array();
  for (const Tensor& tensor : parcel.tensors) {
    if (!tensor.defined() || tensor.device() != Device::cpu)
      fail("a tensor for a worker is not in this program's memory");
    tensors.push_back({dtype_name(tensor.dtype()), tensor.shape()});
  }
  const Json all = {{"name", parcel.name}, {"words", parcel.words}, {"tensors", tensors}};
  try {
    words_ = all.dump();  // not dump_json(), which would change invalid UTF-8
  } catch (const Json::exception&) {
    fail("a text for a worker is not UTF-8");
  }
  if (words_.size() > kMostWords || parcel.tensors.size() > kMostTensors)
    fail("{} bytes of words and {} tensors are more than a worker takes at once", words_.size(),
         parcel.tensors.size());
  bytes_ = kHead + words_.size();
  for (const Tensor& tensor : parcel.tensors) {
    places_.push_back(aligned(bytes_));
    bytes_ = places_.back() + tensor.bytes();
  }
}

void PackedParcel::write(std::byte* to) const {
  const std::uint64_t size = words_.size();
  std::memcpy(to, &kParcelMark, sizeof kParcelMark);
  std::memcpy(to + sizeof kParcelMark, &size, sizeof size);
  std::memcpy(to + kHead, words_.data(), size);
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (const Tensor& tensor = parcel_.tensors[i]; tensor.bytes() > 0)
      std::memcpy(to + places_[i], tensor.raw(), tensor.bytes());
}

Parcel read_parcel(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  std::uint64_t mark = 0, size = 0;
  if (bytes.size() < kHead) fail("{}: no parcel", kParcelWords);
  std::memcpy(&mark, bytes.data(), sizeof mark);
  std::memcpy(&size, bytes.data() + sizeof mark, sizeof size);
  if (mark != kParcelMark || size > bytes.size() - kHead || size > kMostWords)
    fail("{}: no parcel", kParcelWords);
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + kHead, size);
  Json all = parse_json(text, kParcelWords);
  Parcel parcel;
  parcel.name = need_string(all, "name", kParcelWords);
  const auto tensors = all.find("tensors"), words = all.find("words");
  if (words == all.end() || tensors == all.end() || !tensors->is_array() ||
      tensors->size() > kMostTensors)
    fail("{}: no words, or no list of tensors", kParcelWords);
  std::uint64_t at = kHead + size;
  for (const Json& entry : *tensors) {
    at = aligned(at);
    const auto dtype = entry.is_array() && entry.size() == 2 ? dtype_of(entry[0]) : std::nullopt;
    const auto shape =
        dtype && at <= bytes.size() ? shape_of(entry[1], *dtype, bytes.size() - at) : std::nullopt;
    if (!shape) fail("{}: a tensor that cannot be", kParcelWords);
    const Tensor there = Tensor::borrow(bytes.data() + at, *shape, *dtype, owner ? owner : nullptr);
    parcel.tensors.push_back(owner ? there : there.clone());
    at += there.bytes();
  }
  parcel.words = std::move(*words);
  return parcel;
}

}  // namespace vfm::workers
