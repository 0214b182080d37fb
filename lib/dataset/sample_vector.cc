// SPDX-License-Identifier: Apache-2.0
#include "dataset/sample_vector.h"

#include <cmath>
#include <utility>

#include "base/encoder_identity.h"
#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "base/philox.h"
#include "io/npy.h"

namespace vfm::dataset {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kMostNames = 64, kLongestName = 4096;

/// Returns the mean of the rows after scaling each to length 1. Rows of zeros and rows with values
/// that are not finite are left out.
std::vector<float> mean_of_rows(const std::vector<float>& values, std::size_t dim) {
  std::vector<double> sum(dim);
  bool any = false;
  for (std::size_t at = 0; at < values.size(); at += dim) {
    double length = 0;
    for (std::size_t d = 0; d < dim; ++d)
      length += double{values[at + d]} * values[at + d];
    if (!std::isfinite(length) || length <= 0) continue;
    any = true;
    for (std::size_t d = 0; d < dim; ++d)
      sum[d] += values[at + d] / std::sqrt(length);
  }
  if (!any) return {};
  return {sum.begin(), sum.end()};
}

}  // namespace

SampleVector sample_vector(const JoinedSample& sample, std::string_view member) {
  SampleVector vector;
  const std::string_view npy = sample.find(member);
  if (!npy.data()) return vector;
  const std::string what = fmt::format("'{}.{}'", sample.key, member);
  const io::NpyHeader header = io::parse_npy(npy, what);
  vector.values = io::npy_floats(npy, what);
  if (header.shape.size() == 2 && header.shape[0] != 1)
    vector.values = mean_of_rows(vector.values, static_cast<std::size_t>(header.shape[1]));
  if (vector.values.empty()) return vector;
  const std::string name(member.substr(0, member.size() - kEnding.size()));
  const auto encoder = sample.meta->find(name + "_encoder");
  if (encoder != sample.meta->end()) vector.by = dump_json(encoder_identity(*encoder));
  vector.encoder = random_key(fmt::format("{} {}", vector.values.size(), vector.by));
  return vector;
}

std::string unit_halves(const std::vector<float>& values) {
  double length = 0;
  for (const float value : values)
    length += double{value} * value;
  if (!std::isfinite(length) || length <= 0) return {};
  std::vector<float> unit(values);
  for (float& value : unit)
    value = static_cast<float>(value / std::sqrt(length));
  std::string halves(unit.size() * sizeof(std::uint16_t), '\0');
  floats_to_halves(unit, {reinterpret_cast<std::uint16_t*>(halves.data()), unit.size()});
  return halves;
}

void VectorNames::add(const SampleVector& vector) {
  if (!vector.values.empty()) add(vector.encoder, vector.by);
}

void VectorNames::add(std::uint64_t encoder, std::string by) {
  names_.emplace(encoder, by.size() <= kLongestName ? std::move(by) : std::string());
  cut();
}

void VectorNames::merge(const VectorNames& other) {
  names_.insert(other.names_.begin(), other.names_.end());
  cut();
}

void VectorNames::cut() {
  while (names_.size() > kMostNames)
    names_.erase(std::prev(names_.end()));
}

Json VectorNames::of(std::uint64_t encoder) const {
  const auto found = names_.find(encoder);
  if (found == names_.end() || found->second.empty()) return nullptr;
  return parse_json(found->second, "an encoder");
}

void check_vector_name(const std::string& option, const std::string& member) {
  const bool ends = member.ends_with(kEnding) && member.size() > kEnding.size();
  if (!ends || member.find_first_of("/ \n\t") != std::string::npos || member.front() == '.')
    fail_usage("{}: '{}' is not the name of a member with vectors, such as {} or text.npy", option,
               member, kDefaultVector);
}

}  // namespace vfm::dataset
