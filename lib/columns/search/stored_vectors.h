// The vectors of samples in a tar: one for each sample's clip, or for its caption. Thread-safety:
// any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/held_json.h"
#include "base/json_fwd.h"
#include "io/manifest.h"
#include "shard/reader.h"

namespace vfm::columns {

enum class VectorKind { video, text };

/// "video" and "text": KEY.video.npy, "video_encoder" and so on.
const char* to_string(VectorKind kind);

/// The tar with the vectors of a shard's record: its embed column, or its own tar. The record has
/// "columns" (shard::complete_shard).
std::string vectors_tar(const io::Record& record);

/// The samples of a tar by number: from the index beside it, or from its headers if the index is
/// missing or does not fit, which is logged; of a damaged tar the samples before the damage. Throws
/// Error if the tar is missing, or compressed: then samples can only be read in order.
shard::IndexedReader open_rows(const std::string& tar, const shard::ReadLimits& limits);

struct StoredVector {
  std::uint64_t at = 0;  ///< where its numbers begin in the tar: halves, little-endian
  std::vector<float> values;
  HeldJson encoder;
};

class StoredVectors {
 public:
  /// Throws Error as open_rows().
  StoredVectors(const std::string& tar, VectorKind kind, const shard::ReadLimits& limits);

  std::int64_t rows() const { return reader_.samples(); }
  /// Why the tar ends after these rows; empty: it is whole, at least by its index.
  const std::string& damage() const { return reader_.index().damage; }
  /// Reads the vector of sample `row`, at least 0 and below rows(). False if it has none. Throws
  /// Error if it is not one vector of halves, or its encoder is not named.
  bool read(std::int64_t row, StoredVector& out);

 private:
  shard::IndexedReader reader_;
  VectorKind kind_;
  shard::ReadBuffer buffer_;
};

/// Throws the Error that says that `what` are vectors of words, by the text encoder `encoder`.
[[noreturn]] void fail_as_words(const std::string& what, const Json& encoder);

/// Reads `out.size()` halves at `at`. Throws Error.
void read_halves(const io::File& tar, std::uint64_t at, std::vector<float>& out);

/// Scales a vector to length 1. False if it has no length: all zeros, or not finite.
bool to_unit_length(std::vector<float>& vector);

/// Cosine of a query, of length 1, with a stored vector, of length nearly 1 (halves): at most 1; 0
/// if the vector has no length.
double stored_cosine(const std::vector<float>& query, const std::vector<float>& stored);

}  // namespace vfm::columns
