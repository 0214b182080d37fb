// SPDX-License-Identifier: Apache-2.0
#include "dist/flight_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "base/format.h"
#include "base/json.h"

namespace vfm::dist {
namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// To microseconds, which a double holds.
double rounded(double seconds) {
  return static_cast<double>(std::llround(seconds * 1e6)) / 1e6;
}

void keep(std::string& text, std::string_view what) {
  text.assign(what.substr(0, FlightRecorder::kMostText));
  if (what.size() > FlightRecorder::kMostText)
    text += vfm::format("... #{:x}", std::hash<std::string_view>()(what));
}

}  // namespace

void FlightRecorder::name(int rank, std::string host) {
  const std::lock_guard lock(mutex_);
  rank_ = rank;
  host_ = std::move(host);
}

void FlightRecorder::start(std::string start) {
  const std::lock_guard lock(mutex_);
  start_ = std::move(start);
}

std::string FlightRecorder::start() const {
  const std::lock_guard lock(mutex_);
  return start_;
}

int FlightRecorder::add_group(std::string axis, std::vector<int> ranks) {
  const std::lock_guard lock(mutex_);
  Members& group = groups_.emplace_back();
  group.axis = std::move(axis);
  group.ranks = std::move(ranks);
  return static_cast<int>(groups_.size()) - 1;
}

FlightRecorder::Entry& FlightRecorder::next(int group, std::string_view what, bool gpu) {
  if (entries_.size() < kKept) entries_.emplace_back();
  Entry& entry = entries_[static_cast<std::size_t>(count_) % kKept];
  entry.ticket = count_++;
  entry.group = group;
  entry.number = entry.sent = entry.received = 0;
  entry.to = entry.from = -1;
  entry.begun = wall_seconds();
  entry.ended = 0;
  entry.gpu = gpu;
  keep(entry.what, what);
  return entry;
}

FlightRecorder::Ticket FlightRecorder::begin(int group, std::int64_t number, std::string_view what,
                                             bool gpu) {
  const std::lock_guard lock(mutex_);
  Entry& entry = next(group, what, gpu);
  entry.number = number;
  Members& members = groups_[static_cast<std::size_t>(group)];
  members.begun = number;
  members.begun_what = entry.what;
  return {entry.ticket, number, group};
}

FlightRecorder::Ticket FlightRecorder::begin_message(int group, int to, int from,
                                                     std::string_view what, bool gpu) {
  const std::lock_guard lock(mutex_);
  Entry& entry = next(group, what, gpu);
  Members& members = groups_[static_cast<std::size_t>(group)];
  members.last_message = entry.what;
  ++members.messages;
  ++members.open;
  entry.to = to;
  entry.from = from;
  if (to >= 0) entry.sent = ++members.sent[to];
  if (from >= 0) entry.received = ++members.received[from];
  return {entry.ticket, 0, group};
}

void FlightRecorder::end(const Ticket& ticket) {
  if (ticket.entry < 0) return;
  const std::lock_guard lock(mutex_);
  Members& members = groups_[static_cast<std::size_t>(ticket.group)];
  members.ended = std::max(members.ended, ticket.number);
  if (ticket.number == 0) --members.open;
  Entry& entry = entries_[static_cast<std::size_t>(ticket.entry) % kKept];
  if (entry.ticket == ticket.entry) entry.ended = wall_seconds();
}

void FlightRecorder::section(std::string_view what) {
  const std::lock_guard lock(mutex_);
  section_ = what;
}

void FlightRecorder::failed(std::string_view error) {
  const std::lock_guard lock(mutex_);
  error_ = error;
}

std::string FlightRecorder::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::string FlightRecorder::beat() const {
  constexpr std::size_t kShort = 80;
  const std::lock_guard lock(mutex_);
  std::string groups;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Members& group = groups_[i];
    if (group.begun + group.messages == 0 || group.ranks.size() < 2) continue;
    Json facts = {{"group", i},
                  {"first", group.ranks.front()},
                  {"axis", group.axis},
                  {"begun", group.begun},
                  {"what", group.begun_what.substr(0, kShort)},
                  {"ended", group.ended}};
    if (group.messages > 0)
      facts.update({{"messages", group.messages},
                    {"last", group.last_message.substr(0, kShort)},
                    {"open", group.open}});
    const std::string one = dump_json(facts);
    if (groups.size() + one.size() + section_.size() + kShort > kMostBeat) break;
    groups += (groups.empty() ? "" : ",") + one;
  }
  return vfm::format("{{\"section\":{},\"groups\":[{}]}}", dump_json(section_), groups);
}

std::string FlightRecorder::record() const {
  const std::lock_guard lock(mutex_);
  Json groups = Json::array(), collectives = Json::array();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Members& group = groups_[i];
    if (group.ranks.size() < 2) continue;
    groups.push_back({{"group", i},
                      {"axis", group.axis},
                      {"ranks", group.ranks},
                      {"begun", group.begun},
                      {"ended", group.ended}});
  }
  for (std::int64_t t = std::max<std::int64_t>(0, count_ - std::int64_t{kKept}); t < count_; ++t) {
    const Entry& entry = entries_[static_cast<std::size_t>(t) % kKept];
    Json line = {{"group", entry.group}};
    if (entry.number > 0) line["number"] = entry.number;
    line["what"] = entry.what;
    if (entry.to >= 0) line.update({{"to", entry.to}, {"sent", entry.sent}});
    if (entry.from >= 0) line.update({{"from", entry.from}, {"received", entry.received}});
    line["begun"] = rounded(entry.begun);
    if (entry.ended > 0) line["ended"] = rounded(entry.ended);
    if (entry.gpu) line["gpu"] = true;
    collectives.push_back(std::move(line));
  }
  Json record = {{"rank", rank_},
                 {"host", host_},
                 {"pid", ::getpid()},
                 {"start", start_},
                 {"time", rounded(wall_seconds())},
                 {"section", section_},
                 {"error", error_}};
  if (const int waits = waits_; waits >= 0) record["waits"] = waits > 0;
  record["groups"] = std::move(groups);
  record["collectives"] = std::move(collectives);
  return dump_json(record) + "\n";
}

}  // namespace vfm::dist
