// Reads vectors of clips or of captions from a tar. Thread-safety: any thread.
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

/// Returns "video" or "text", as in KEY.video.npy and "video_encoder".
const char* to_string(VectorKind kind);

/// Returns the tar with a shard's vectors: its embed column, or its own tar. The record must have
/// "columns" (shard::complete_shard).
std::string vectors_tar(const io::Record& record);

/// Reads samples of a tar by number, from the index beside it. If the index is missing or does not
/// fit, the tar's headers are read, which is logged. If the tar is damaged, only samples before the
/// damage can be read. Throws Error if the tar is missing, or compressed.
shard::IndexedReader open_rows(const std::string& tar, const shard::ReadLimits& limits);

struct StoredVector {
  std::uint64_t at = 0;  ///< offset in the tar of its halves, little-endian
  std::vector<float> values;
  HeldJson encoder;
};

class StoredVectors {
 public:
  /// Throws what open_rows() throws.
  StoredVectors(const std::string& tar, VectorKind kind, const shard::ReadLimits& limits);

  std::int64_t rows() const { return reader_.samples(); }
  /// Returns the reason why the tar ends after these rows, or an empty text if the tar is complete,
  /// at least by its index.
  const std::string& damage() const { return reader_.index().damage; }
  /// Reads the vector of sample `row`, at least 0 and below rows(). Returns false if the sample has
  /// no vector. Throws Error if the member is not one vector of halves, or the json does not give
  /// its encoder.
  bool read(std::int64_t row, StoredVector& out);

 private:
  shard::IndexedReader reader_;
  VectorKind kind_;
  shard::ReadBuffer buffer_;
};

/// Throws Error, which says that `what` are vectors of words by text encoder `encoder`.
[[noreturn]] void fail_as_words(const std::string& what, const Json& encoder);

/// Reads `out.size()` halves at offset `at`. Throws Error.
void read_halves(const io::File& tar, std::uint64_t at, std::vector<float>& out);

/// Scales a vector to length 1. Returns false if it is all zeros or not finite.
bool to_unit_length(std::vector<float>& vector);

/// Returns the cosine of a unit vector `query` and a stored vector, whose length after rounding to
/// halves is nearly 1. The result is at most 1, and 0 if `stored` is all zeros or not finite.
double stored_cosine(const std::vector<float>& query, const std::vector<float>& stored);

}  // namespace vfm::columns
