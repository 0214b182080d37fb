// Values as bytes for another rank of the same program. They are written and read in the same
// order, by the same build. This is not a file format: only the number of bytes is checked.
// Thread-safety: one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"

namespace vfm::generate {

class ClipParcel {
 public:
  template <class Value>
  requires std::is_trivially_copyable_v<Value>
  void add(const Value& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(std::string_view text) {
    add(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }
  void add(const std::string& text) { add(std::string_view(text)); }
  template <class Value>
  void add(const std::vector<Value>& values) {
    static_assert(std::is_trivially_copyable_v<Value>);
    add(static_cast<std::uint64_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ClipParcelReader {
 public:
  /// Keeps `bytes` as a view.
  explicit ClipParcelReader(std::string_view bytes) : rest_(bytes) {}

  template <class Value>
  requires std::is_trivially_copyable_v<Value>
  void read(Value& value) { std::memcpy(&value, next(sizeof value).data(), sizeof value); }
  void read(std::string& text) { text = next(count()); }
  template <class Value>
  void read(std::vector<Value>& values) {
    const std::uint64_t n = count();
    const std::string_view bytes = next(n * sizeof(Value));
    values.resize(n);
    if (n > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  }

 private:
  std::uint64_t count() {
    std::uint64_t n = 0;
    read(n);
    return n;
  }
  std::string_view next(std::uint64_t bytes) {
    if (bytes > rest_.size()) fail("a parcel between ranks ends too early");
    const std::string_view found = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return found;
  }

  std::string_view rest_;
};

}  // namespace vfm::generate
