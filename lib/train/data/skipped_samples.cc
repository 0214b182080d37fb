// SPDX-License-Identifier: Apache-2.0
#include "train/data/skipped_samples.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "dist/together.h"
#include "io/file.h"
#include "io/line_reader.h"

namespace vfm::train {
namespace {

/// The keys that a file names, sorted, each once. Throws Error{usage}.
std::vector<std::string> read_skipped(const std::string& path) {
  std::set<std::string> keys;
  as_usage([&] {
    io::LineReader lines(io::File::open_read(path), "'" + path + "'");
    while (auto line = lines.next()) {
      if (line->ends_with('\r')) line->pop_back();
      if (line->starts_with('{'))
        *line = need_string(parse_json(*line, lines.where()), "input", lines.where());
      if (!line->empty()) keys.insert(*std::move(line));
    }
  });
  return {keys.begin(), keys.end()};
}

/// The numbers of the samples with these sorted keys, ascending.
std::vector<std::size_t> find_samples(const Dataset& data, const std::vector<std::string>& keys) {
  constexpr std::size_t kTogether = 4096;
  std::vector<std::size_t> found;
  std::vector<std::uint64_t> next;
  for (std::size_t begin = 0; begin < data.size() && !keys.empty(); begin += kTogether) {
    next.resize(std::min(kTogether, data.size() - begin));
    std::iota(next.begin(), next.end(), std::uint64_t{begin});
    data.index().expect(next);
    for (const std::uint64_t i : next)
      if (std::ranges::binary_search(keys, data.entry(i).key)) found.push_back(i);
  }
  return found;
}

}  // namespace

std::vector<std::string> leave_out_skipped(dist::World& world, Dataset& data,
                                           const std::string& file, const std::string& run,
                                           const Json& train) {
  std::vector<std::string> keys;
  std::vector<std::size_t> samples;
  on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    if (train.is_object()) keys = train.value(kSkippedSamples, keys);
    if (!file.empty()) {
      std::vector<std::string> given = read_skipped(file);
      if (train.is_object() && given != keys)
        log_warning(
            "--skip-samples names {}, and '{}' has left out {} up to here: others are "
            "trained on now",
            counted(std::ssize(given), "sample"), run, keys.size());
      keys = std::move(given);
    }
    samples = find_samples(data, keys);
    if (samples.empty() && !keys.empty() && !file.empty())
      fail_usage("'{}' has {}, and none is that of a sample of the data, such as '{}'", file,
                 counted(std::ssize(keys), "key"), data.entry(0).key);
    if (!keys.empty()) log_info("{} left out", counted(std::ssize(samples), "sample"));
  });
  const std::string told = dist::broadcast(world, dump_json(Json(samples)));
  data.leave_out(parse_json(told, "samples to leave out").get<std::set<std::size_t>>());
  return keys;
}

}  // namespace vfm::train
