// SPDX-License-Identifier: Apache-2.0
#include "parts/part_marker.h"

#include <fmt/core.h>

#include <array>
#include <ctime>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace vfm::parts {
namespace {

constexpr const char* kTime = "%Y-%m-%dT%H:%M:%SZ";
constexpr std::size_t kFactsBytes = std::size_t{16} << 10;
/// The begin of the outputs. It is never within a text, where a quote follows a backslash.
constexpr std::string_view kOutputs = ",\"outputs\":[";

Json to_json(const PartMarker& marker) {
  Json outputs = Json::array();
  for (const PartResults::Output& output : marker.results.outputs)
    outputs.push_back({{"path", output.path}, {"bytes", output.bytes}, {"xxh3", output.xxh3}});
  Json errors = Json::object(), versions = Json::object();
  for (const auto& [cause, count] : marker.results.errors)
    errors[cause] = count;
  for (const auto& [what, version] : marker.results.versions)
    versions[what] = version;
  return {{"version", 1},
          {"tool", marker.tool},
          {"part", marker.part},
          {"parts", marker.parts},
          {"inputs", marker.inputs},
          {"records", marker.results.records},
          {"errors", std::move(errors)},
          {"versions", std::move(versions)},
          {"host", marker.host},
          {"node_kind", marker.node_kind},
          {"begun", marker.begun},
          {"ended", marker.ended},
          {"seconds", marker.seconds},
          {"outputs", std::move(outputs)}};
}

std::uint64_t need_count(const Json& value, const char* name, const std::string& what) {
  const std::int64_t number = need_integer(value, name, what);
  if (number < 0) fail("'{}' of {} is below 0", name, what);
  return static_cast<std::uint64_t>(number);
}

PartMarker from_json(const Json& json, const std::string& what) {
  if (const auto version = need_integer(json, "version", what); version != 1)
    fail("{} has version {}; this vfm reads version 1", what, version);
  PartMarker marker;
  marker.tool = need_string(json, "tool", what);
  marker.part = static_cast<int>(need_integer(json, "part", what));
  marker.parts = static_cast<int>(need_integer(json, "parts", what));
  marker.inputs = need_string(json, "inputs", what);
  marker.results.records = need_count(json, "records", what);
  for (const Json& output : json.value("outputs", Json::array()))
    marker.results.outputs.push_back({need_string(output, "path", what),
                                      need_count(output, "bytes", what),
                                      need_string(output, "xxh3", what)});
  const Json errors = json.value("errors", Json::object());
  for (const auto& [cause, count] : errors.items())
    marker.results.errors[cause] = need_count(errors, cause.c_str(), what);
  const Json versions = json.value("versions", Json::object());
  for (const auto& [name, version] : versions.items())
    marker.results.versions[name] = need_string(versions, name.c_str(), what);
  marker.host = need_string(json, "host", what);
  marker.begun = need_string(json, "begun", what);
  marker.ended = need_string(json, "ended", what);
  marker.node_kind = need_string(json, "node_kind", what);
  marker.seconds = need_number(json, "seconds", what);
  return marker;
}

}  // namespace

std::optional<PartMarker> read_marker(const io::Store& store, const std::string& name) {
  const std::optional<io::Store::Object> found = store.read(name);
  if (!found) return std::nullopt;
  const std::string what = "the marker '" + name + "'";
  return from_json(parse_json(found->contents, what), what);
}

std::optional<PartMarker> read_marker_facts(const io::Store& store, const std::string& name,
                                            std::optional<std::uint64_t> bytes) {
  if (!bytes)
    if (const std::optional<io::Store::Facts> facts = store.facts(name)) bytes = facts->bytes;
  if (!bytes) return std::nullopt;
  if (*bytes > kFactsBytes) {
    std::string text = store.read_range(name, 0, kFactsBytes);
    if (const std::size_t end = text.find(kOutputs); end != std::string::npos) {
      const std::string what = "the marker '" + name + "'";
      return from_json(parse_json(text.replace(end, std::string::npos, "}"), what), what);
    }
  }
  std::optional<PartMarker> marker = read_marker(store, name);
  if (marker) marker->results.outputs.clear();
  return marker;
}

bool create_marker(io::Store& store, const std::string& name, const PartMarker& marker) {
  return store.create(name, dump_json(to_json(marker)) + "\n");
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  ::gmtime_r(&now, &day);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), kTime, &day)};
}

double seconds_between(const std::string& begun, const std::string& ended) {
  std::tm from{}, to{};
  if (!::strptime(begun.c_str(), kTime, &from) || !::strptime(ended.c_str(), kTime, &to)) return 0;
  return std::difftime(::timegm(&to), ::timegm(&from));
}

}  // namespace vfm::parts
