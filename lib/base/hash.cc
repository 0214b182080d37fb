// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

namespace vfm {

// XXH3_64bits and XXH3_128bits have the same state (xxhash.h), so one state serves both digests. A
// unit test checks this.
struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh);
}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::update(const void* data, std::size_t size) {
  XXH3_128bits_update(state_->xxh, data, size);
  return *this;
}

std::string Hasher::hex64() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(state_->xxh));
}

std::string Hasher::hex128() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

std::string hash_hex(std::string_view text) {
  const XXH128_hash_t digest = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

}  // namespace vfm
