// SPDX-License-Identifier: Apache-2.0
#include "shard/input_totals.h"

#include <functional>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/manifest.h"
#include "io/remote/address.h"
#include "shard/columns.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace vfm::shard {
namespace {

/// Returns false if the input cannot be read, or only once.
bool for_each_record(const std::vector<std::string>& inputs,
                     const std::function<void(const io::Record&)>& use) {
  for (const std::string& input : inputs) {
    if (input == "-" || input == io::kNames) return false;
    // An address without the extension of a file may be a folder. Asking a server takes longer than
    // this is worth.
    if (io::is_remote(input) ? io::extension(input).empty() : io::is_folder(input)) return false;
    if (io::is_manifest_name(input) && !io::is_remote(input) && !io::is_file(input)) return false;
  }
  try {
    io::ManifestReader reader(inputs, [](const io::Fault&) {});
    while (const auto record = reader.next())
      use(*record);
  } catch (const Error&) {
    return false;  // The error is reported when the work begins.
  }
  return true;
}

std::optional<std::uint64_t> known_samples(const io::Record& shard) {
  const auto said = get_integer(shard.json, "samples");
  if (said && *said > 0) return static_cast<std::uint64_t>(*said);
  const auto index = io::size_of(energon_index_path(get_string(shard.json, "path").value_or("")));
  if (!index || *index < 8) return std::nullopt;
  return *index / 8 - 1;
}

/// `tool clips/*.tar` also names columns, which are read with their shards.
bool is_own_shard(const io::Record& record) {
  const auto path = get_string(record.json, "path");
  return record.kind == "shard" && path &&
         (record.json->contains("columns") || !is_column_tar(*path));
}

}  // namespace

std::uint64_t count_videos(const std::vector<std::string>& inputs) {
  std::uint64_t videos = 0;
  const bool known = for_each_record(
      inputs, [&](const io::Record& record) { videos += record.kind == "video" ? 1 : 0; });
  return known ? videos : 0;
}

std::uint64_t count_samples(const std::vector<std::string>& inputs) {
  std::uint64_t samples = 0;
  bool said = true;
  const bool known = for_each_record(inputs, [&](const io::Record& record) {
    if (!said || !is_own_shard(record)) return;
    // A server is not asked about each of many shards.
    const bool asks = !get_integer(record.json, "samples") &&
                      io::is_remote(get_string(record.json, "path").value_or(""));
    const auto count = asks ? std::nullopt : known_samples(record);
    samples += count.value_or(0);
    said = said && count;
  });
  return known && said ? samples : 0;
}

std::uint64_t count_shards(const std::vector<std::string>& inputs) {
  std::uint64_t shards = 0;
  const bool known = for_each_record(
      inputs, [&](const io::Record& record) { shards += is_own_shard(record) ? 1 : 0; });
  return known ? shards : 0;
}

double sample_count(const io::Record& record) {
  if (const auto known = known_samples(record)) return static_cast<double>(*known);
  StreamReader reader(record.path());
  Sample sample;
  double samples = 0;
  while (reader.next(sample))
    ++samples;
  return samples;
}

double video_seconds(const io::Record& record) {
  constexpr int kLooked = 64;
  StreamReader reader(record.path());
  Sample sample;
  int looked = 0;
  double seconds = 0;
  for (; looked < kLooked && reader.next(sample); ++looked) {
    const std::string* json = sample.find("json");
    const Json facts = json ? parse_json(*json, sample.key) : Json();
    if (facts.is_object()) seconds += get_number(facts, "seconds").value_or(0);
  }
  return looked > 0 ? seconds * sample_count(record) / looked : 0;
}

}  // namespace vfm::shard
