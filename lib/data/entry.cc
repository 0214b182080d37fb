// SPDX-License-Identifier: Apache-2.0
#include "data/entry.h"

#include <cmath>

#include "base/error.h"
#include "base/json.h"

namespace vfm::data {
namespace {

int need_size(const Json& line, const char* name, int least) {
  const std::int64_t value = need_integer(line, name, "the entry");
  if (value < least || value > 1'000'000) fail("'{}' is {}", name, value);
  return static_cast<int>(value);
}

Entry entry_of(const Json& line) {
  if (!line.is_object()) fail("not a JSON object");
  Entry entry;
  entry.key = need_string(line, "key", "the entry");
  entry.shard = need_string(line, "shard", "the entry");
  if (entry.shard.empty() || entry.shard[0] == '.' || entry.shard.find('/') != std::string::npos)
    fail("'shard' is '{}', not a file name", entry.shard);
  entry.row = need_integer(line, "row", "the entry");
  if (entry.row < 0) fail("'row' is {}", entry.row);
  entry.frames = need_size(line, "frames", 1);
  entry.height = need_size(line, "height", 1);
  entry.width = need_size(line, "width", 1);
  entry.fps = need_number(line, "fps", "the entry");
  if (!std::isfinite(entry.fps) || entry.fps < 0) fail("'fps' is {}", entry.fps);
  entry.text_tokens = need_size(line, "text_tokens", 0);
  entry.xxh3 = get_string(line, "xxh3").value_or("");
  return entry;
}

}  // namespace

Json to_json(const Entry& entry) {
  Json json = {{"key", entry.key},       {"shard", entry.shard},
               {"row", entry.row},       {"frames", entry.frames},
               {"height", entry.height}, {"width", entry.width},
               {"fps", entry.fps},       {"text_tokens", entry.text_tokens}};
  if (!entry.xxh3.empty()) json["xxh3"] = entry.xxh3;
  return json;
}

Entry parse_entry(const Json& line, std::string_view what) {
  try {
    return entry_of(line);
  } catch (const Error& error) {
    fail("{}: {}", what, error.what());
  }
}

bool store_failed(Cause cause) {
  return may_pass(cause) || cause == Cause::server || cause == Cause::rejected ||
         cause == Cause::open;
}

void fetch_or_fail(std::span<SampleBytes* const> parts,
                   const std::function<void(std::span<SampleBytes* const>)>& fetch) {
  const auto attempt = [&](std::span<SampleBytes* const> some) {
    try {
      fetch(some);
      return std::string();
    } catch (const Error& error) {
      if (store_failed(error.cause())) throw;
      return std::string(error.what());
    }
  };
  if (attempt(parts).empty()) return;
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i]->failure = attempt(parts.subspan(i, 1));
}

std::int64_t token_count(const Entry& entry, const Patch& patch) {
  return std::int64_t{entry.frames / patch.frames} * (entry.height / patch.height) *
         (entry.width / patch.width);
}

}  // namespace vfm::data
