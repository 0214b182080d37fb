// SPDX-License-Identifier: Apache-2.0
#include "train/data/synthetic.h"

#include <charconv>

#include "base/error.h"

namespace vfm::train {
namespace {

constexpr int kEach = 64;    // samples of a size
constexpr double kFps = 24;  // of those with several frames

}  // namespace

std::vector<data::Entry> synthetic_entries(const SampleSizes& sizes) {
  std::vector<data::Entry> entries;
  for (int i = 0; i < kEach; ++i) {
    for (const auto& [frames, height, width] : sizes) {
      data::Entry& entry = entries.emplace_back();
      entry.key = fmt::format("synthetic-{:05}", entries.size());
      entry.frames = frames;
      entry.height = height;
      entry.width = width;
      entry.fps = frames > 1 ? kFps : 0;
    }
  }
  return entries;
}

SampleSizes parse_sizes(std::string_view text) {
  SampleSizes sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto refuse = [&] {
    fail_usage("'{}' is not a list of sizes: write FRAMESxHEIGHTxWIDTH,...", text);
  };
  while (true) {
    std::array<int, 3>& size = sizes.emplace_back();
    for (std::size_t i = 0; i < 3; ++i) {
      const auto [stop, error] = std::from_chars(at, end, size[i]);
      if (error != std::errc{} || size[i] < 1 || size[i] > 65536) refuse();
      at = stop;
      if (i < 2 && (at == end || *at++ != 'x')) refuse();
    }
    if (at == end) return sizes;
    if (*at++ != ',') refuse();
  }
}

}  // namespace vfm::train
