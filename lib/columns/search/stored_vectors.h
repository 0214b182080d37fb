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
#include "shard/tar_file.h"

namespace vfm::columns {

enum class VectorKind { video, text };

/// Returns "video" or "text", as in KEY.video.npy or "text_encoder".
const char* to_string(VectorKind kind);

/// Returns the tar with a shard's vectors, which is the embed column or the shard's own tar. The
/// record must have "columns" (shard::complete_shard).
std::string vectors_tar(const io::Record& record);

/// Opens a tar whose samples are read by number. If the index beside the tar is missing or does not
/// fit, reads the tar's headers, with a line in the log. If the tar is damaged, only samples before
/// the damage can be read. Throws Error if the tar is missing or compressed.
shard::IndexedReader open_rows(const std::string& tar, const shard::ReadLimits& limits);

struct StoredVector {
  std::uint64_t at = 0;  ///< Offset of the vector's fp16 numbers in the tar.
  std::vector<float> values;
  HeldJson encoder;
};

class StoredVectors {
 public:
  /// Throws what open_rows() throws.
  StoredVectors(const std::string& tar, VectorKind kind, const shard::ReadLimits& limits);

  std::int64_t rows() const { return reader_.samples(); }
  /// Returns a description of the damage after the last row, or "" for a complete tar.
  const std::string& damage() const { return reader_.index().damage; }
  /// Reads the vector of sample `row`, 0 <= row < rows(). Returns false if the sample has no
  /// vector. Throws Error if the member is not a single vector in fp16, or if the json does not
  /// name the encoder.
  bool read(std::int64_t row, StoredVector& out);

 private:
  shard::IndexedReader reader_;
  VectorKind kind_;
  shard::ReadBuffer buffer_;
};

/// Throws Error, which says that `what` has a vector for each word, by the text encoder `encoder`.
[[noreturn]] void fail_as_words(const std::string& what, const Json& encoder);

/// Reads out.size() numbers in fp16, little-endian, at offset `at`. Throws Error.
void read_halves(const shard::TarFile& tar, std::uint64_t at, std::vector<float>& out);

/// Scales a vector to length 1. Returns false if all numbers are zero or a number is not finite.
bool to_unit_length(std::vector<float>& vector);

/// Returns the cosine of a unit vector `query` and a stored vector, at most 1. Returns 0 if all
/// numbers of `stored` are zero or a number is not finite.
double stored_cosine(const std::vector<float>& query, const std::vector<float>& stored);

}  // namespace vfm::columns
