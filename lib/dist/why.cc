// SPDX-License-Identifier: Apache-2.0
#include "dist/why.h"

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "dist/rank_words.h"
#include "io/file.h"
#include "io/folder.h"

namespace vfm::dist {
namespace {

using GroupKey = std::tuple<int, int>;  // a group's number and its lowest rank

struct CallRecord {
  int group = 0, to = -1, from = -1;
  bool gpu = false;
  std::int64_t number = 0, sent = 0, received = 0;
  std::string what;
  double begun = 0;
  bool ended = false;
};

struct GroupRecord {
  std::string axis;
  std::vector<int> ranks;
  std::int64_t begun = 0, ended = 0;
};

struct RankRecord {
  int rank = 0;
  std::string host, section, error, start;
  double time = 0;
  bool computes = false;  // its thread waits for no rank
  std::map<int, GroupRecord> groups = {};
  std::vector<CallRecord> entries = {};

  /// Whether it may be waiting for the end of an entry.
  bool may_wait_in(const CallRecord& entry) const {
    return !entry.ended && (entry.gpu || !computes);
  }
};

RankRecord parse_record(const std::string& text) {
  const std::string what = "a flight record";
  const Json json = parse_json(text, what);
  try {
    RankRecord record{static_cast<int>(need_integer(json, "rank", what)),
                      need_string(json, "host", what),
                      need_string(json, "section", what),
                      need_string(json, "error", what),
                      get_string(json, "start").value_or(""),
                      need_number(json, "time", what),
                      !json.value("waits", true)};
    for (const Json& one : json.at("groups")) {
      GroupRecord& group = record.groups[one.at("group").get<int>()] = {
          need_string(one, "axis", what), one.at("ranks").get<std::vector<int>>(),
          need_integer(one, "begun", what), need_integer(one, "ended", what)};
      if (group.ranks.empty()) fail("{} has a group without ranks", what);
    }
    for (const Json& one : json.at("collectives")) {
      CallRecord entry;
      entry.group = one.at("group").get<int>();
      if (!record.groups.contains(entry.group)) continue;
      entry.number = get_integer(one, "number").value_or(0);
      entry.to = static_cast<int>(get_integer(one, "to").value_or(-1));
      entry.from = static_cast<int>(get_integer(one, "from").value_or(-1));
      entry.sent = get_integer(one, "sent").value_or(0);
      entry.received = get_integer(one, "received").value_or(0);
      entry.what = need_string(one, "what", what);
      entry.begun = need_number(one, "begun", what);
      entry.ended = one.contains("ended");
      entry.gpu = one.value("gpu", false);
      record.entries.push_back(std::move(entry));
    }
    return record;
  } catch (const Json::exception& error) {
    fail("{} is not what vfm-train writes: {}", what, error.what());
  }
}

/// One collective that has not ended on all ranks that began it, or a message.
struct OpenCall {
  std::string place;  // "all_gather of F32 elements [4 4] (31 of 'tp')"
  std::string axis, what;
  std::int64_t number = 0;
  std::vector<int> wait, missing, ended;
  std::map<std::string, std::vector<int>> calls;
  double since = std::numeric_limits<double>::infinity();
};

class WhyAnalysis {
 public:
  WhyAnalysis(const std::vector<RecordFile>& records, const RecordFile& end) {
    if (!end.name.empty()) attempt(end, [&] { read_end(parse_json(end.text, "the file")); });
    read_records(records);
    if (records_.empty() && end_.empty())
      fail("'{}' is no record: {}", left_out_[0].name, left_out_[0].error);
    for (const auto& [rank, record] : records_)
      for (const auto& [number, group] : record.groups)
        all_.insert(group.ranks.begin(), group.ranks.end());
    find_open();
  }

  Json result() {
    Json result = {{"kind", "why"}, {"died", true}};
    if (const auto kind = get_string(end_, "kind")) {
      result["reason"] = *kind;
      result["message"] = get_string(end_, "message").value_or("");
      result["time"] = get_number(end_, "time").value_or(0);
      say_end();
    }
    result["lost"] = lost_;
    std::vector<int> without;
    for (const int rank : all_)
      if (!records_.contains(rank)) without.push_back(rank);
    result["without_record"] = without;
    result["left_out"] = Json::array();
    for (const RecordFile& file : left_out_)
      result["left_out"].push_back({{"file", file.name}, {"why", file.error}});
    Json errors = Json::array();
    for (const auto& [rank, record] : records_)
      if (!record.error.empty()) {
        errors.push_back({{"rank", rank}, {"error", record.error}});
        if (std::find(blamed_.begin(), blamed_.end(), rank) == blamed_.end())
          say("rank {} on host {} failed, too: {}", rank, record.host, record.error);
      }
    result["errors"] = std::move(errors);
    say_open();
    Json open = Json::array();
    for (const OpenCall& one : open_) {
      Json line = {{"axis", one.axis}, {"number", one.number},   {"what", one.what},
                   {"wait", one.wait}, {"missing", one.missing}, {"ended", one.ended}};
      if (one.calls.size() > 1)
        for (const auto& [what, ranks] : one.calls)
          line["calls"].push_back({{"what", what}, {"ranks", ranks}});
      open.push_back(std::move(line));
    }
    result["collectives"] = std::move(open);
    result["ranks"] = say_ranks();
    if (!without.empty())
      say("no record of {}: lost, stopped, or ended before it could write", rank_words(without));
    for (const RecordFile& file : left_out_)
      say("'{}' is left out: {}", file.name, file.error);
    result["words"] = words_;
    return result;
  }

 private:
  template <class... Args>
  void say(FormatString<Args...> pattern, Args&&... args) {
    words_.push_back(vfm::format(pattern, std::forward<Args>(args)...));
  }

  void attempt(const RecordFile& file, const std::function<void()>& read) {
    try {
      if (!file.error.empty()) fail("{}", file.error);
      read();
    } catch (const Error& error) {
      left_out_.push_back({file.name, "", error.what()});
    }
  }

  /// A rank that was stopped while the run died may write its record when it runs again, among
  /// those of the next start.
  void read_records(const std::vector<RecordFile>& files) {
    std::vector<std::pair<const RecordFile*, RankRecord>> read;
    for (const RecordFile& file : files)
      attempt(file, [&] { read.emplace_back(&file, parse_record(file.text)); });
    const auto newest = std::ranges::max_element(
        read, {}, [](const auto& one) -> const double& { return one.second.time; });
    std::string start = get_string(end_, "start").value_or("");
    if (end_.empty() && newest != read.end()) start = newest->second.start;
    for (auto& [file, record] : read) {
      const int rank = record.rank;
      if (record.start == start)
        records_.emplace(rank, std::move(record));
      else
        left_out_.push_back({file->name, "", "it is of another start of the run"});
    }
  }

  const RankRecord* record_of(int rank) const {
    const auto found = records_.find(rank);
    return found == records_.end() ? nullptr : &found->second;
  }
  const CallRecord* entry_of(int rank, const GroupKey& key, std::int64_t number) const {
    const RankRecord* record = record_of(rank);
    if (record)
      for (const CallRecord& entry : record->entries)
        if (entry.number == number && entry.group == std::get<0>(key)) return &entry;
    return nullptr;
  }

  void find_open() {
    std::set<std::pair<GroupKey, std::int64_t>> seen;
    for (const auto& [rank, record] : records_)
      for (const CallRecord& entry : record.entries) {
        if (entry.ended) continue;
        const GroupRecord& group = record.groups.at(entry.group);
        if (entry.number == 0) {
          open_.push_back(message(record, group, entry));
          continue;
        }
        const GroupKey key{entry.group, group.ranks.front()};
        if (!seen.insert({key, entry.number}).second) continue;
        open_.push_back(collective(key, group, entry.number));
        if (!open_.back().missing.empty()) incomplete_.insert({key, entry.number});
      }
    for (const OpenCall& one : open_)
      missing_.insert(one.missing.begin(), one.missing.end());
    std::stable_sort(open_.begin(), open_.end(),
                     [](const OpenCall& a, const OpenCall& b) { return a.since < b.since; });
  }

  OpenCall collective(const GroupKey& key, const GroupRecord& group, std::int64_t number) const {
    OpenCall open;
    open.axis = group.axis;
    open.number = number;
    for (const int rank : group.ranks) {
      const RankRecord* record = record_of(rank);
      const CallRecord* entry = entry_of(rank, key, number);
      std::int64_t begun = 0;
      if (record && record->groups.contains(std::get<0>(key)))
        begun = record->groups.at(std::get<0>(key)).begun;
      if (entry) {
        open.calls[entry->what].push_back(rank);
        open.since = std::min(open.since, entry->begun);
        if (open.what.empty()) open.what = entry->what;
      }
      if (entry && !entry->ended)
        open.wait.push_back(rank);
      else if (entry || begun >= number)
        open.ended.push_back(rank);
      else if (record || lost(rank))
        open.missing.push_back(rank);
      // Of the others nothing is known.
    }
    open.place = vfm::format("{} ({} of '{}')", open.what, number, group.axis);
    return open;
  }

  OpenCall message(const RankRecord& record, const GroupRecord& group,
                   const CallRecord& entry) const {
    OpenCall open;
    open.axis = group.axis;
    open.what = entry.what;
    open.wait = {record.rank};
    open.since = entry.begun;
    std::string of;
    const auto peer = [&](int rank, bool comes, std::int64_t number) {
      if (rank < 0) return;
      open.number = number;
      of += vfm::format("{}number {} {} rank {}", of.empty() ? "" : ", ", number,
                        comes ? "from" : "to", rank);
      std::int64_t done = 0;
      if (const RankRecord* other = record_of(rank))
        for (const CallRecord& one : other->entries)
          if (one.group == entry.group && (comes ? one.to : one.from) == record.rank)
            done = std::max(done, comes ? one.sent : one.received);
      if (done < number) open.missing.push_back(rank);
    };
    peer(entry.from, true, entry.received);
    peer(entry.to, false, entry.sent);
    open.place = vfm::format("{} of '{}' ({})", entry.what, group.axis, of);
    return open;
  }

  bool lost(int rank) const { return std::find(lost_.begin(), lost_.end(), rank) != lost_.end(); }

  void read_end(const Json& end) {
    constexpr const char* kWhat = "the file";
    try {
      std::vector<int> blamed = end.value("ranks", std::vector<int>());
      if (const int rank = static_cast<int>(need_integer(end, "rank", kWhat)); rank >= 0)
        blamed.push_back(rank);
      const std::string kind = need_string(end, "kind", kWhat);
      need_string(end, "message", kWhat);
      get_number(end, "time");
      get_string(end, "start");
      std::set<int> all;
      for (const Json& one : end.value("all", Json::array()))
        all.insert(static_cast<int>(need_integer(one, "rank", kWhat)));
      blamed_ = std::move(blamed);
      if (kind == "silent" || kind == "ended" || kind == "left") lost_ = blamed_;
      all_ = std::move(all);
      end_ = end;
    } catch (const Json::exception& error) {
      fail("it is not what vfm-train writes: {}", error.what());
    }
  }

  void say_end() {
    const auto seconds = static_cast<std::time_t>(get_number(end_, "time").value_or(0));
    std::tm parts{};
    char text[32] = "";
    if (::gmtime_r(&seconds, &parts)) std::strftime(text, sizeof text, "%F %T UTC", &parts);
    say("the run ended at {}: {}", text, get_string(end_, "message").value_or(""));
  }

  /// Whether others have not come to it.
  bool incomplete(const RankRecord& record, const CallRecord& entry) const {
    const GroupRecord& group = record.groups.at(entry.group);
    if (entry.number == 0) return !message(record, group, entry).missing.empty();
    return incomplete_.contains({{entry.group, group.ranks.front()}, entry.number});
  }
  /// What it began first of what misses others, or else of all that it may be waiting in; null:
  /// nothing. Where a GPU has something to do that all have begun, and others wait for the rank,
  /// its thread is what has not come on.
  const CallRecord* waits_in(const RankRecord& record) const {
    const CallRecord* first = nullptr;
    for (const CallRecord& entry : record.entries) {
      if (!record.may_wait_in(entry)) continue;
      if (incomplete(record, entry)) return &entry;
      if (!first || (first->gpu && !entry.gpu)) first = &entry;
    }
    return first && first->gpu && missing_.contains(record.rank) ? nullptr : first;
  }
  bool waits(int rank) const {
    const RankRecord* record = record_of(rank);
    return record && waits_in(*record);
  }
  std::string doing(const RankRecord& record) const {
    if (const CallRecord* entry = waits_in(record)) return "waits in " + place_of(record, *entry);
    const CallRecord* last = record.entries.empty() ? nullptr : &record.entries.back();
    const std::string section = record.section.empty() ? "no section" : record.section;
    return last ? vfm::format("waits for no rank: it is in '{}' after {}", section,
                              place_of(record, *last))
                : vfm::format("waits for no rank: it is in '{}'", section);
  }
  std::string place_of(const RankRecord& record, const CallRecord& entry) const {
    const GroupRecord& group = record.groups.at(entry.group);
    if (entry.number == 0) return message(record, group, entry).place;
    return vfm::format("{} ({} of '{}')", entry.what, entry.number, group.axis);
  }

  /// Who did not come where, and who came with something else.
  void say_open() {
    bool root = false;
    for (const OpenCall& one : open_) {
      if (one.calls.size() > 1) {
        root = true;
        std::string text;
        for (const auto& [what, ranks] : one.calls)
          text += vfm::format("{}{} with {}", text.empty() ? "" : ", ", rank_words(ranks), what);
        say("collective {} of '{}' is not the same on all ranks: {}", one.number, one.axis, text);
      }
      for (const int rank : one.missing)
        root = root || !waits(rank);
    }
    for (const OpenCall& one : open_) {
      std::vector<int> to_blame;
      for (const int rank : one.missing)
        if (!root || !waits(rank)) to_blame.push_back(rank);
      if (to_blame.empty() || one.wait.empty()) continue;
      say("{} did not come to {}, where {} {}", rank_words(to_blame), one.place,
          rank_words(one.wait), one.wait.size() == 1 ? "waits" : "wait");
    }
    if (!root && std::any_of(open_.begin(), open_.end(),
                             [](const OpenCall& one) { return !one.missing.empty(); }))
      say("these ranks wait for each other: one has left out a collective, or they do not call the "
          "same ones in the same order");
  }

  /// What each rank did, equal ones together.
  Json say_ranks() {
    std::vector<std::pair<std::string, std::vector<int>>> states;
    for (const auto& [rank, record] : records_) {
      std::string state = doing(record);
      const auto same = std::find_if(states.begin(), states.end(),
                                     [&](const auto& one) { return one.first == state; });
      if (same == states.end())
        states.push_back({std::move(state), {rank}});
      else
        same->second.push_back(rank);
    }
    Json ranks = Json::array();
    for (auto& [state, of] : states) {
      std::string words = state;
      if (of.size() > 1 && words.starts_with("waits")) words.erase(4, 1);
      if (of.size() > 1)
        if (const auto at = words.find(": it is in "); at != std::string::npos)
          words.replace(at, 11, ": they are in ");
      say("{} {}", rank_words(of), words);
      ranks.push_back({{"ranks", of}, {"state", state}});
    }
    return ranks;
  }

  std::map<int, RankRecord> records_;
  Json end_ = Json::object();
  std::set<int> all_;
  std::vector<RecordFile> left_out_;                        // and why
  std::set<std::pair<GroupKey, std::int64_t>> incomplete_;  // collectives that miss ranks
  std::set<int> missing_;                                   // in any of them, or in a message
  std::vector<int> blamed_, lost_;
  std::vector<OpenCall> open_;
  std::vector<std::string> words_;
};

}  // namespace

Json why_of_records(const std::vector<RecordFile>& records, const RecordFile& end) {
  return WhyAnalysis(records, end).result();
}

Json why_it_died(const std::string& run) {
  const std::string folder = io::join_path(run, "flight");
  std::vector<RecordFile> records;
  RecordFile end;
  for (const io::FolderEntry& entry : io::entries(folder)) {
    const bool is_end = entry.name == "run.json";
    if (!is_end && !(entry.name.starts_with("rank-") && entry.name.ends_with(".json"))) continue;
    RecordFile file{io::join_path(folder, entry.name), ""};
    try {
      file.text = io::read_file(file.name);
    } catch (const Error& error) {
      file.error = error.what();
    }
    if (is_end)
      end = std::move(file);
    else
      records.push_back(std::move(file));
  }
  if (records.empty() && end.name.empty())
    return {{"kind", "why"},
            {"run", run},
            {"died", false},
            {"words", {"no record: the run did not die, or not since it was last started"}}};
  Json result = why_of_records(records, end);
  result["run"] = run;
  return result;
}

}  // namespace vfm::dist
