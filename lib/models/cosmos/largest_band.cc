// SPDX-License-Identifier: Apache-2.0
#include "models/cosmos/largest_band.h"

#include <string>
#include <utility>
#include <vector>

namespace vfm::models {
namespace {

int largest_band(std::int64_t rows, int bands) {
  const std::vector<std::int64_t> begins = band_rows(rows, bands);
  const auto size_of = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    const bool inside = i > 0 && i + 1 < bands;
    return std::pair(begins[at + 1] - begins[at], inside);
  };
  int largest = 0;
  for (int i = 1; i < bands; ++i)
    if (size_of(i) > size_of(largest)) largest = i;
  return largest;
}

std::vector<int> ranks_of(int bands) {
  std::vector<int> ranks;
  for (int rank = 0; rank < bands; ++rank)
    ranks.push_back(rank);
  return ranks;
}

class NobodyElse final : public dist::Group {
 public:
  NobodyElse(int rank, int size) : Group("bands", rank, ranks_of(size)) {}
  void barrier() override {}
  std::vector<std::string> gather(const std::string&) override { return {}; }

 private:
  std::unique_ptr<dist::Pending> start(const dist::Call&) override { return nullptr; }
};

}  // namespace

LargestBand::LargestBand(std::int64_t rows, int bands)
    : group_(std::make_unique<NobodyElse>(largest_band(rows, bands), bands)),
      exchange_(RankLine(*group_), rows) {}

}  // namespace vfm::models
