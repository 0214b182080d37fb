// SPDX-License-Identifier: Apache-2.0
#include "curate/split.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/philox.h"

namespace vfm::curate {
namespace {

bool valid_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// Gives each empty part the smallest new source of the fullest part that can spare one.
void fill_empty_parts(const SplitWalk& walk, std::span<std::uint8_t> part_of, std::size_t parts) {
  for (std::size_t empty = 0; empty < parts; ++empty) {
    std::vector<std::uint64_t> count(parts), movable(parts), samples(parts);
    walk([&](std::size_t i, const SplitSource& source) {
      ++count[part_of[i]];
      movable[part_of[i]] += source.part ? 0 : 1;
      samples[part_of[i]] += source.samples;
    });
    if (count[empty] > 0) continue;
    std::size_t giver = parts;
    for (std::size_t p = 0; p < parts; ++p)
      if (count[p] > 1 && movable[p] > 0 && (giver == parts || samples[p] > samples[giver]))
        giver = p;
    if (giver == parts) return;
    std::optional<std::size_t> given;
    std::uint64_t least = 0;
    walk([&](std::size_t i, const SplitSource& source) {
      if (part_of[i] != giver || source.part || (given && source.samples >= least)) return;
      given = i;
      least = source.samples;
    });
    part_of[*given] = static_cast<std::uint8_t>(empty);
  }
}

}  // namespace

std::vector<SplitPart> parse_split(std::string_view text) {
  std::vector<SplitPart> parts;
  double sum = 0;
  for (std::string rest(text);;) {
    const std::size_t comma = rest.find(',');
    const std::string word = rest.substr(0, comma);
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string share_text = equals == std::string::npos ? "" : word.substr(equals + 1);
    char* end = nullptr;
    const double share = std::strtod(share_text.c_str(), &end);
    if (!valid_name(name) || share_text.empty() || *end != '\0' || !(share > 0 && share <= 1))
      fail_usage(
          "--split: '{}' is not NAME=SHARE with a share above 0; write it like "
          "train=0.95,val=0.05",
          word);
    for (const SplitPart& part : parts)
      if (part.name == name) fail_usage("--split: '{}' comes twice", name);
    parts.push_back({name, share});
    sum += share;
    if (comma == std::string::npos) break;
    rest.erase(0, comma + 1);
  }
  if (parts.size() > kMostParts)
    fail_usage("--split: {} parts; the most is {}", parts.size(), kMostParts);
  if (std::abs(sum - 1) > 1e-6) fail_usage("--split: the shares sum to {:.6g}, not to 1", sum);
  return parts;
}

std::uint32_t split_draw(std::uint64_t seed, std::uint64_t key) {
  return Random(seed, Purpose::split, 0, key).bits(0);
}

void assign_split(const SplitWalk& walk, const std::vector<SplitPart>& parts,
                  std::span<std::uint8_t> part_of) {
  double total = 0;
  std::vector<double> there(parts.size());
  walk([&](std::size_t i, const SplitSource& source) {
    total += static_cast<double>(source.samples);
    if (!source.part) return;
    part_of[i] = static_cast<std::uint8_t>(*source.part);
    there[*source.part] += static_cast<double>(source.samples);
  });
  std::vector<double> wanted;
  for (std::size_t p = 0; p < parts.size(); ++p)
    wanted.push_back(parts[p].share * total - there[p]);
  walk([&](std::size_t i, const SplitSource& source) {
    if (source.part) return;
    const auto most = std::max_element(wanted.begin(), wanted.end());
    part_of[i] = static_cast<std::uint8_t>(most - wanted.begin());
    *most -= static_cast<double>(source.samples);
  });
  fill_empty_parts(walk, part_of, parts.size());
}

}  // namespace vfm::curate
