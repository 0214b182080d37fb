// SPDX-License-Identifier: Apache-2.0
#include "parts/status.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "io/at_once.h"
#include "io/file.h"
#include "io/store.h"
#include "parts/part_lease.h"
#include "parts/part_marker.h"
#include "parts/part_run.h"
#include "parts/parts_look.h"

namespace vfm::parts {
namespace {

const char* kind_name(PartState::Kind kind) {
  switch (kind) {
    case PartState::Kind::done:
      return "done";
    case PartState::Kind::working:
      return "working";
    case PartState::Kind::failed:
      return "failed";
    case PartState::Kind::missing:
      return "missing";
  }
  return "";
}

PartState done_state(int part, const PartMarker& marker) {
  PartState state{part,         PartState::Kind::done, marker.host,   0, marker.node_kind,
                  marker.begun, marker.ended,          marker.seconds};
  state.records = marker.results.records;
  state.errors = marker.results.errors;
  return state;
}

/// Fills in why the last process gave the part up, if it did.
void take_failure(const io::Store& store, const std::string& name, PartState& state) {
  state.kind = PartState::Kind::missing;
  const std::optional<io::Store::Object> found = store.read(name + "/failed.json");
  if (!found) return;
  const std::string what = "'" + name + "/failed.json'";
  const Json failed = parse_json(found->contents, what);
  state.kind = PartState::Kind::failed;
  state.host = need_string(failed, "host", what);
  state.begun = need_string(failed, "begun", what);
  state.ended = need_string(failed, "ended", what);
  state.why = need_string(failed, "why", what);
}

/// The parts of a tool in a folder.
struct LookedAt {
  const io::Store& store;
  std::string tool;
  PartsLook look;

  std::string name(int part) const { return tool + "/" + part_name(part); }
  PartState not_done(int part) const {
    PartState state{part};
    if (look.may_have_failed(part)) take_failure(store, name(part), state);
    return state;
  }
  /// A lease counts as one of a working process, unless its process is gone.
  PartState see(int part) {
    if (const auto marker = look.marker(part)) return done_state(part, *marker);
    const std::optional<LeaseFacts> lease = look.lease(part);
    if (!lease || lease->process.is_gone()) return not_done(part);
    PartState state{part};
    state.kind = PartState::Kind::working;
    state.host = lease->process.host;
    state.pid = lease->process.pid;
    state.node_kind = lease->node_kind;
    state.begun = lease->begun;
    return state;
  }
};

/// Looks at the parts again on which processes seem to work, until each process has shown a sign of
/// life, or none for too long.
void watch_leases(LookedAt& at, std::vector<PartState>& parts) {
  LeaseWatch watch;
  bool said = false;
  for (;;) {
    bool unknown = false;
    for (PartState& state : parts) {
      if (state.kind != PartState::Kind::working) continue;
      state = at.see(state.part);
      if (state.kind != PartState::Kind::working) continue;
      const std::optional<LeaseFacts> lease = at.look.lease(state.part);
      const LeaseWatch::Sign sign =
          lease ? watch.see(at.name(state.part), *lease) : LeaseWatch::Sign::unknown;
      if (sign == LeaseWatch::Sign::dead) state = at.not_done(state.part);
      unknown = unknown || sign == LeaseWatch::Sign::unknown;
    }
    if (!unknown) return;
    if (!said) log_info("looking whether the processes of some parts still work");
    said = true;
    check_stop();
    pause(at.look.is_listed() ? 2 : 0.2);
    at.look.refresh();
  }
}

std::string cell(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()) + 2, ' ');
}

/// Returns the rows with columns of equal width. The first row is the heading.
std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += cell(row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string headline(const PartsStatus& status) {
  using Kind = PartState::Kind;
  std::string text = fmt::format("{}: {} of {} parts done", status.tool, status.count(Kind::done),
                                 status.parts.size());
  for (const Kind kind : {Kind::working, Kind::failed, Kind::missing})
    if (const int count = status.count(kind))
      text += fmt::format(", {} {}", count, kind_name(kind));
  if (const double rate = status.rate(); rate > 0)
    text += fmt::format("; {} parts an hour, {} left", format_count(rate),
                        format_seconds(status.seconds_left()));
  return text + "\n";
}

}  // namespace

int PartsStatus::count(PartState::Kind kind) const {
  return static_cast<int>(std::count_if(parts.begin(), parts.end(),
                                        [&](const PartState& part) { return part.kind == kind; }));
}

std::vector<int> PartsStatus::to_do() const {
  std::vector<int> numbers;
  for (const PartState& part : parts)
    if (part.kind == PartState::Kind::missing || part.kind == PartState::Kind::failed)
      numbers.push_back(part.part);
  return numbers;
}

double PartsStatus::rate() const {
  double seconds = 0;
  int done = 0, working = 0;
  for (const auto& [name, host] : hosts) {
    seconds += host.seconds;
    done += host.done;
    working += host.working;
  }
  return seconds > 0 ? 3600.0 * working * done / seconds : 0;
}

double PartsStatus::seconds_left() const {
  const double parts_an_hour = rate();
  const auto left = static_cast<int>(parts.size()) - count(PartState::Kind::done);
  return parts_an_hour > 0 ? 3600.0 * left / parts_an_hour : 0;
}

PartsStatus look_at_parts(const std::string& directory, const std::string& tool, bool watch) {
  const std::optional<int> parts = count_parts(directory, tool);
  if (!parts)
    fail_usage("'{}' has no parts of {}; name the output folder of commands with --part", directory,
               command_of(tool));
  const std::unique_ptr<io::Store> store = open_parts(directory);
  LookedAt at{*store, tool, PartsLook(*store, directory, tool)};
  PartsStatus status{command_of(tool), {}, {}, {}};
  for (int part = 0; part < *parts; ++part)
    status.parts.push_back(PartState{part});
  std::vector<int> begun;
  for (const int part : at.look.begun())
    if (part < *parts) begun.push_back(part);
  // Only markers are read at once, as leases are remembered.
  std::vector<std::optional<PartMarker>> markers(static_cast<std::size_t>(*parts));
  const std::size_t requests = at.look.is_listed() ? kRequests : 1;
  io::for_each_at_once(begun.size(), requests, [&](std::size_t i) {
    check_stop();
    markers[static_cast<std::size_t>(begun[i])] = at.look.marker(begun[i]);
  });
  for (const int part : begun) {
    const auto& marker = markers[static_cast<std::size_t>(part)];
    status.parts[static_cast<std::size_t>(part)] =
        marker ? done_state(part, *marker) : at.see(part);
  }
  if (watch) watch_leases(at, status.parts);
  for (const PartState& part : status.parts) {
    if (part.kind != PartState::Kind::done && part.kind != PartState::Kind::working) continue;
    for (HostState* sum : {&status.hosts[part.host], &status.kinds[part.node_kind]}) {
      ++(part.kind == PartState::Kind::done ? sum->done : sum->working);
      sum->seconds += part.seconds;
    }
  }
  return status;
}

Json part_record(const PartsStatus& status, const PartState& part) {
  Json record = {{"kind", "part"},
                 {"tool", status.tool},
                 {"part", part.part},
                 {"state", kind_name(part.kind)}};
  if (!part.host.empty()) record["host"] = part.host;
  if (!part.node_kind.empty()) record["node_kind"] = part.node_kind;
  if (part.pid > 0) record["pid"] = part.pid;
  if (!part.begun.empty()) record["begun"] = part.begun;
  if (!part.ended.empty()) record["ended"] = part.ended;
  if (!part.why.empty()) record["why"] = part.why;
  if (part.kind == PartState::Kind::done) {
    record["records"] = part.records;
    record["errors"] = part.errors;
  }
  return record;
}

static Json sums_record(const std::map<std::string, HostState>& sums) {
  Json record = Json::object();
  for (const auto& [name, sum] : sums) {
    Json& entry = record[name] = {{"done", sum.done}, {"working", sum.working}};
    if (sum.done > 0) entry["seconds_a_part"] = sum.seconds / sum.done;
  }
  return record;
}

Json parts_record(const PartsStatus& status) {
  Json record = {{"kind", "parts"}, {"tool", status.tool}, {"parts", status.parts.size()}};
  using Kind = PartState::Kind;
  for (const Kind kind : {Kind::done, Kind::working, Kind::failed, Kind::missing})
    record[kind_name(kind)] = status.count(kind);
  std::uint64_t records = 0;
  std::map<std::string, std::uint64_t> errors;
  for (const PartState& part : status.parts) {
    records += part.records;
    for (const auto& [cause, count] : part.errors)
      errors[cause] += count;
  }
  record["records"] = records;
  record["errors"] = errors;
  if (const double rate = status.rate(); rate > 0) {
    record["parts_an_hour"] = rate;
    record["seconds_left"] = status.seconds_left();
  }
  record["hosts"] = sums_record(status.hosts);
  record["node_kinds"] = sums_record(status.kinds);
  return record;
}

std::string status_table(const PartsStatus& status) {
  constexpr std::size_t kMostShown = 20;
  std::string text = headline(status);
  std::vector<std::vector<std::string>> rows{{"part", "state", "host", "since", "why"}};
  std::size_t open = 0;
  for (const PartState& part : status.parts) {
    if (part.kind == PartState::Kind::done || ++open > kMostShown) continue;
    rows.push_back({std::to_string(part.part), kind_name(part.kind), part.host, part.begun,
                    part.why.substr(0, part.why.find('\n'))});
  }
  if (open > 0) text += "\n" + table_of(rows);
  if (open > kMostShown) text += fmt::format("and {} more parts\n", open - kMostShown);
  rows = {{"host", "done", "working", "seconds a part"}};
  for (const auto& [name, host] : status.hosts)
    rows.push_back({name, std::to_string(host.done), std::to_string(host.working),
                    host.done > 0 ? fmt::format("{:.1f}", host.seconds / host.done) : ""});
  if (!status.hosts.empty()) text += "\n" + table_of(rows);
  return text;
}

std::vector<ArrayWindow> missing_expressions(const std::vector<int>& parts, int max_array_size) {
  std::vector<ArrayWindow> windows;
  for (std::size_t i = 0; i < parts.size();) {
    const int offset = max_array_size > 0 ? parts[i] / max_array_size * max_array_size : 0;
    const auto is_next = [&](std::size_t at) {
      return at < parts.size() && parts[at] == parts[at - 1] + 1 &&
             (max_array_size == 0 || parts[at] < offset + max_array_size);
    };
    const int first = parts[i++] - offset;
    while (is_next(i))
      ++i;
    const int last = parts[i - 1] - offset;
    if (windows.empty() || windows.back().offset != offset) windows.push_back({"", offset});
    std::string& expression = windows.back().expression;
    if (!expression.empty()) expression += ',';
    expression += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
  }
  return windows;
}

}  // namespace vfm::parts
