// The form in which ranks and workers that make clips send values to each other.
//
// Each struct that is sent has a function fields(ClipWire&, Struct&) in this namespace. It names
// the struct's fields once, for writing and for reading. Values of trivially copyable types are
// sent as their bytes. Both processes run the same build. This is not a file format: only the
// number of bytes is checked. Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/held_json.h"
#include "tensor/tensor.h"

namespace vfm::generate {

class ClipWire {
 public:
  /// Writes the values that it is given.
  ClipWire() = default;
  /// Reads them, in the same order. Keeps `bytes` as a view. Throws Error where they end too early.
  explicit ClipWire(std::string_view bytes) : reads_(true), rest_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (one(values), ...);
  }
  std::string take() { return std::move(bytes_); }
  /// Call it after reading the last value. Throws Error if bytes are left.
  void end() const;

 private:
  template <class Value>
  void one(Value& value) {
    if constexpr (std::is_trivially_copyable_v<Value>)
      raw(&value, sizeof value);
    else
      fields(*this, value);
  }
  void one(std::string& text) {
    const std::uint64_t n = count(text.size(), 1);
    text.resize(n);
    raw(text.data(), n);
  }
  template <class Value>
  void one(std::vector<Value>& values) {
    constexpr bool simple = std::is_trivially_copyable_v<Value>;
    const std::uint64_t n = count(values.size(), simple ? sizeof(Value) : 1);
    values.resize(n);
    if constexpr (simple)
      raw(values.data(), n * sizeof(Value));
    else
      for (Value& value : values)
        one(value);
  }
  template <class Value>
  void one(std::optional<Value>& value) {
    bool there = value.has_value();
    one(there);
    if (!there) return value.reset();
    if (!value) value.emplace();
    one(*value);
  }
  /// Reads into a new object, since others may share the old one.
  template <class Value>
  void one(std::shared_ptr<Value>& value) {
    bool there = value != nullptr;
    one(there);
    if (!there) return value.reset();
    using Plain = std::remove_const_t<Value>;
    if (!reads_) return one(const_cast<Plain&>(*value));  // is not changed
    const auto made = std::make_shared<Plain>();
    one(*made);
    value = made;
  }
  void one(HeldJson& json);
  void one(Tensor& tensor);  ///< of f32, on the CPU

  /// Writes or reads a number of items. Each of the items has `least` bytes or more.
  std::uint64_t count(std::uint64_t n, std::uint64_t least);
  void raw(void* value, std::uint64_t bytes);

  bool reads_ = false;
  std::string bytes_;
  std::string_view rest_;
};

/// pack() returns the bytes of a message, which may have several values. unpack() reads them, and
/// throws Error unless they are all of the message.
template <class... Values>
std::string pack(const Values&... values) {
  ClipWire wire;
  wire(const_cast<Values&>(values)...);  // writing does not change them
  return wire.take();
}
template <class... Values>
void unpack(std::string_view bytes, Values&... values) {
  ClipWire wire(bytes);
  wire(values...);
  wire.end();
}

}  // namespace vfm::generate
