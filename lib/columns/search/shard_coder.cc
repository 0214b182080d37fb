// SPDX-License-Identifier: Apache-2.0
#include "columns/search/shard_coder.h"

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "columns/search/index_writer.h"

namespace vfm::columns {
namespace {

constexpr std::size_t kCodedTogether = 1024;  // vectors; enough for fast products of matrices

}  // namespace

bool usable(StoredVector& vector, const IndexModel& model) {
  return vector.values.size() == model.dim && to_unit_length(vector.values);
}

/// Vectors that wait to be coded together.
class ShardCoder::Pack {
 public:
  Pack(const ShardCoder& coder, std::string& out) : coder_(coder), out_(out) {}

  /// Call push() in the order of rows. `vector` is null for a row without a vector.
  void push(const StoredVector* vector) {
    rows_.push_back(vector ? vector->at : 0);
    if (vector) values_.insert(values_.end(), vector->values.begin(), vector->values.end());
    if (values_.size() == kCodedTogether * coder_.model_.dim) flush();
  }

  void flush() {
    const std::size_t dim = coder_.model_.dim, bytes = code_bytes(dim);
    const std::size_t n = values_.size() / dim;
    std::vector<std::uint32_t> list(n);
    std::vector<std::uint8_t> code(n * bytes);
    coder_.inverted_.code(values_.data(), n, list.data(), code.data());
    const std::string none(bytes, '\0');
    std::size_t i = 0;
    for (const std::uint64_t at : rows_) {
      CodedRow row{CodedRow::kNoList, 0, none};
      if (at != 0) {
        row = {list[i], at, {reinterpret_cast<const char*>(&code[i * bytes]), bytes}};
        ++i;
      }
      put_coded_row(out_, row);
    }
    rows_.clear();
    values_.clear();
  }

 private:
  const ShardCoder& coder_;
  std::string& out_;
  std::vector<std::uint64_t> rows_;
  std::vector<float> values_;
};

ShardCoder::ShardCoder(const IndexModel& model, const InvertedFile& inverted,
                       const shard::ReadLimits& limits)
    : model_(model),
      inverted_(inverted),
      limits_(limits),
      identity_(encoder_identity(model.encoder)) {}

CodedShard ShardCoder::code(const IndexedShard& shard) const {
  CodedShard out;
  out.shard = shard;
  Pack pack(*this, out.rows);
  std::uint64_t found = 0, taken = 0, others = 0, bad = 0;
  Json other, known;  // last config of another encoder, and of the index's encoder
  std::string why;    // first error
  try {
    StoredVectors vectors(shard.tar, model_.kind, limits_);
    if (static_cast<std::uint64_t>(vectors.rows()) != shard.rows) fail("changed while it was read");
    StoredVector vector;
    for (std::int64_t row = 0; row < vectors.rows(); ++row) {
      check_stop();
      bool take = false;
      try {
        take = vectors.read(row, vector);
        found += take;
      } catch (const Error& error) {
        if (bad++ == 0) why = error.what();
      }
      if (take && vector.encoder != known) {
        if (encoder_identity(vector.encoder) == identity_) {
          known = vector.encoder;
        } else {
          take = false;
          ++others;
          other = vector.encoder;
        }
      }
      take = take && usable(vector, model_);
      taken += take;
      pack.push(take ? &vector : nullptr);
    }
    pack.flush();
    if (!vectors.damage().empty())
      out.errors.emplace_back(
          shard.path, fmt::format("{}; what comes before is in the index", vectors.damage()),
          Cause::format);
    if (bad > 0)
      out.errors.push_back(
          {shard.path, fmt::format("{} samples are not in the index: {}", bad, why)});
    if (others > 0)
      out.errors.push_back(
          {shard.path,
           fmt::format("{} samples were embedded by {}, the index is of {}: index them apart",
                       others, dump_json(other), dump_json(model_.encoder))});
    if (found == 0 && bad == 0)
      fail("has no {} vectors; run vfm-embed on it first", to_string(model_.kind));
    if (taken == 0 && bad + others == 0)
      fail("all of its {} vectors are zero", to_string(model_.kind));
    if (!shard.changed().empty()) fail("changed while it was read");
  } catch (const Error& error) {
    out.errors.emplace_back(shard.path, error);
    taken = 0;
  }
  if (taken == 0) out.rows.clear();
  return out;
}

}  // namespace vfm::columns
