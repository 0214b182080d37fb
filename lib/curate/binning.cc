// SPDX-License-Identifier: Apache-2.0
#include "curate/binning.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"

namespace vfm::curate {
namespace {

/// An interval of an axis: [low, high).
struct Interval {
  double low = 0, high = std::numeric_limits<double>::infinity();
};

Interval interval_of(const std::vector<double>& edges, double value) {
  const auto above = std::upper_bound(edges.begin(), edges.end(), value);
  Interval interval;
  if (above != edges.end()) interval.high = *above;
  if (above != edges.begin()) interval.low = *(above - 1);
  return interval;
}

/// Writes 2.5 as "2_5", because a dot in a shard's name would cut the name of the DALI index.
std::string plain_number(double value) {
  std::string text = fmt::format("{}", value);
  std::replace(text.begin(), text.end(), '.', '_');
  std::erase(text, '+');
  return text;
}

std::string interval_name(const Interval& interval, std::string_view unit) {
  if (interval.low > 0) return fmt::format("{}{}", plain_number(interval.low), unit);
  if (std::isinf(interval.high)) return fmt::format("any{}", unit);
  return fmt::format("under{}{}", plain_number(interval.high), unit);
}

/// Returns a common ratio in the interval, such as "16x9", or else the edges.
std::string aspect_name(const Interval& interval) {
  struct Ratio {
    double value;
    const char* name;
  };
  static constexpr Ratio known[] = {{16. / 9, "16x9"}, {9. / 16, "9x16"}, {4. / 3, "4x3"},
                                    {3. / 4, "3x4"},   {1, "1x1"},        {21. / 9, "21x9"}};
  if (interval.low == 0 && std::isinf(interval.high)) return "anyaspect";
  for (const Ratio& ratio : known)
    if (ratio.value >= interval.low && ratio.value < interval.high) return ratio.name;
  return "aspect" + interval_name(interval, "");
}

bool known(double value) {
  return std::isfinite(value) && value > 0;
}

}  // namespace

std::vector<double> parse_edges(std::string_view text, std::string_view option) {
  std::vector<double> edges;
  if (text == "none") return edges;
  for (std::string rest(text);;) {
    const std::size_t comma = rest.find(',');
    const std::string word = rest.substr(0, comma);
    char* end = nullptr;
    const double edge = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || !known(edge))
      fail_usage("{}: '{}' is not a positive number; give edges like 256,480,720, or none", option,
                 word);
    if (!edges.empty() && edge <= edges.back())
      fail_usage("{}: {} does not follow {}; give the edges in rising order", option, edge,
                 edges.back());
    edges.push_back(edge);
    if (comma == std::string::npos) return edges;
    rest.erase(0, comma + 1);
  }
}

std::string bin_name(const BinEdges& edges, const BinFacts& facts) {
  std::string name = "unsized";
  if (known(facts.width) && known(facts.height))
    name = interval_name(interval_of(edges.resolution, std::min(facts.width, facts.height)), "p") +
           "_" + aspect_name(interval_of(edges.aspect, facts.width / facts.height));
  if (facts.image) return name + "_" + facts.extension;
  name +=
      "_" + (known(facts.seconds) ? interval_name(interval_of(edges.seconds, facts.seconds), "s")
                                  : std::string("untimed"));
  if (facts.extension.empty()) return name + "_nomedia";
  if (facts.extension != "mp4") name += "_" + facts.extension;
  return name;
}

}  // namespace vfm::curate
