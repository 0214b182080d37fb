// XXH3 hashes of files and streams, used as content addresses and checksums, not for security.
// base/xxh3.h has the hashes for names of samples and parameters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace vfm {

/// Computes XXH3 of a stream, with 64 and 128 bits. hex64 has 16 lower-case digits, and hex128 has
/// 32, both in the canonical (big-endian) order of `xxhsum -H3` and `xxhsum -H2`.
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

/// Returns the hex128 of a text.
std::string hash_hex(std::string_view text);

}  // namespace vfm
