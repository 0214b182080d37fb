// SPDX-License-Identifier: Apache-2.0
#include "columns/search/stored_vectors.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "base/log.h"
#include "curate/vectors/look.h"
#include "io/file.h"
#include "io/npy.h"
#include "models/encoder/picture_encoder.h"

namespace vfm::columns {

shard::IndexedReader open_rows(const std::string& tar, const shard::ReadLimits& limits) {
  if (shard::has_index(tar)) {
    try {
      return shard::IndexedReader(tar, limits);
    } catch (const Error& error) {
      log_info("{}; reading the tar without it", error.what());
    }
  }
  return shard::IndexedReader(tar, shard::TarOffsets::scan(tar, tar), limits);
}

const char* to_string(VectorKind kind) {
  return kind == VectorKind::video ? "video" : "text";
}

std::string vectors_tar(const io::Record& record) {
  return get_string(record.json->at("columns"), "embed").value_or(record.path());
}

StoredVectors::StoredVectors(const std::string& tar, VectorKind kind,
                             const shard::ReadLimits& limits)
    : reader_(open_rows(tar, limits)), kind_(kind) {}

bool StoredVectors::read(std::int64_t row, StoredVector& out) {
  const shard::SampleView& sample = reader_.view(row, buffer_);
  const std::string kind = to_string(kind_);
  const auto member =
      std::find_if(sample.members.begin(), sample.members.end(),
                   [&](const shard::MemberView& view) { return view.extension == kind + ".npy"; });
  if (member == sample.members.end()) return false;
  const std::string what = fmt::format("{}.{}.npy of '{}'", sample.key, kind, reader_.path());
  const io::NpyHeader header = io::parse_npy(member->data, what);
  const auto dim = header.shape.empty() ? 0 : header.shape.back();
  const std::string_view json = sample.find("json");
  const Json facts = json.data() ? parse_json(json, what) : Json();
  const auto encoder = facts.find(kind + "_encoder");
  if (kind_ == VectorKind::text && encoder != facts.end() && header.elements() != dim)
    fail_as_words(what, *encoder);
  if (header.dtype != "<f2" || dim < 1 || header.elements() != dim)
    fail("{} is not one vector in half precision: an index takes one a sample", what);
  out.at = member->offset + header.data_offset;
  out.values = io::npy_floats(member->data, what);
  out.encoder = encoder != facts.end() ? *encoder : Json();
  if (out.encoder->is_null()) {
    if (kind_ == VectorKind::text) fail("{}: its json has no 'text_encoder'", what);
    out.encoder = curate::look_config();
  }
  return true;
}

void fail_as_words(const std::string& what, const Json& encoder) {
  fail(
      "{} are words by {}; an index takes one vector a sample: embed with --text DIR (a sentence "
      "encoder)",
      what, get_string(encoder, "name").value_or("another program"));
}

void read_halves(const shard::TarFile& tar, std::uint64_t at, std::vector<float>& out) {
  std::vector<std::uint16_t> halves(out.size());
  tar.pread_exact(halves.data(), halves.size() * sizeof halves[0], at);
  halves_to_floats(halves, out);
}

bool to_unit_length(std::vector<float>& vector) {
  models::normalise(vector);
  return std::abs(curate::dot(vector, vector) - 1) < 1e-3;
}

double stored_cosine(const std::vector<float>& query, const std::vector<float>& stored) {
  const double length = std::sqrt(curate::dot(stored, stored));
  if (!(length > 0) || std::isinf(length)) return 0;
  return std::min(1.0, curate::dot(query, stored) / length);
}

}  // namespace vfm::columns
