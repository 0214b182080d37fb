// XXH3 hashes of files and streams, as content addresses and checksums. They are not for security.
// Use base/xxh3.h for names of samples and parameters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace vfm {

/// XXH3, 64 and 128 bits of a stream. hex64 is 16 lower-case digits, hex128 is 32, both in the
/// canonical (big-endian) order that `xxhsum -H3` and `xxhsum -H2` print.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  Hasher& update(const void* data, std::size_t size);
  Hasher& update(std::string_view text) { return update(text.data(), text.size()); }
  std::string hex64() const;
  std::string hex128() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the hex128 of one piece of text.
std::string hash_hex(std::string_view text);

}  // namespace vfm
