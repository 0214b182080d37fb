// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace vfm {

// XXH3_64bits and XXH3_128bits accumulate alike, but their digests need states of their own kind.
struct Hasher::State {
  XXH3_state_t* wide = XXH3_createState();
  XXH3_state_t* narrow = XXH3_createState();
  ~State() {
    XXH3_freeState(wide);
    XXH3_freeState(narrow);
  }
};

std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept {
  return XXH3_64bits(data, size);
}

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->wide);
  XXH3_64bits_reset(state_->narrow);
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::update(const void* data, std::size_t size) {
  XXH3_128bits_update(state_->wide, data, size);
  XXH3_64bits_update(state_->narrow, data, size);
  return *this;
}

std::string Hasher::hex64() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_->narrow));
}

std::string Hasher::hex128() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(state_->wide);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

std::string hash_hex(std::string_view text) {
  const XXH128_hash_t digest = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

}  // namespace vfm
