// SPDX-License-Identifier: Apache-2.0
#include "dist/pulse.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/stop.h"
#include "dist/ran_time.h"
#include "dist/rank_words.h"

namespace vfm::dist {
namespace {

constexpr double kBeat = 1;           // seconds between beats
constexpr double kFullBeats = 1024;   // with a text that come to the hub in a second, at most
constexpr double kAnswer = 2;         // for the hub to answer
constexpr double kLeftAlone = 5;      // for the others to go, too, after one has left
constexpr double kRecords = 5;        // for records to be written
constexpr std::size_t kBusy = 65536;  // queued bytes to which no beat is added

}  // namespace

// Shorter than a frame may be, whatever an error says, and however many ranks are lost.
std::string PulseEnd::to_text() const {
  constexpr std::size_t kMost = 32768;
  std::vector<int> some = ranks;
  some.resize(std::min(kMost, some.size()));
  return dump_json({{"kind", kind},
                    {"rank", rank},
                    {"ranks", std::move(some)},
                    {"seconds", seconds},
                    {"text", text.substr(0, kMost)},
                    {"status", status},
                    {"message", message.substr(0, kMost)}});
}

PulseEnd PulseEnd::from_text(const std::string& text) {
  const std::string_view what = "the end of the run";
  const Json json = parse_json(text, what);
  PulseEnd end{need_string(json, "kind", what), static_cast<int>(need_integer(json, "rank", what))};
  for (const Json& rank : json.value("ranks", Json::array()))
    end.ranks.push_back(rank.get<int>());
  end.seconds = need_number(json, "seconds", what);
  end.text = need_string(json, "text", what);
  end.status = static_cast<int>(need_integer(json, "status", what));
  end.message = need_string(json, "message", what);
  return end;
}

Pulse::Pulse(int rank, std::vector<Rank> ranks, std::function<std::string()> beat)
    : rank_(rank), ranks_(std::move(ranks)), beat_(std::move(beat)), beats_(ranks_.size()) {}

int Pulse::parent_of(int rank) const {
  const int first = ranks_[static_cast<std::size_t>(rank)].first;
  return first != rank ? first : rank == 0 ? -1 : 0;
}

std::vector<int> Pulse::children() const {
  std::vector<int> children;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank)
    if (parent_of(rank) == rank_) children.push_back(rank);
  return children;
}

std::string Pulse::name_of(int rank) const {
  const Rank& one = ranks_[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} on host {} (pid {})", rank, one.host, one.pid);
}

void Pulse::connect(int rank, int fd, double now) {
  const auto link = links_.emplace(rank, Link{PulseLink(fd), now}).first;
  if (end_ && rank != parent()) link->second.link.send('E', rank_, end_->to_text());
  next_beat_ = next_full_ = 0;
}

std::vector<int> Pulse::descriptors() const {
  std::vector<int> all;
  for (const auto& [rank, link] : links_)
    if (!link.closed) all.push_back(link.link.fd());
  return all;
}

void Pulse::turn(double now) {
  // Others may run again later than this process, so they have the whole time anew.
  if (turned_ && was_stopped(now - *turned_, kTurn)) {
    for (auto& [rank, link] : links_) {
      link.heard = now;
      if (link.left) link.left = now;
    }
    if (told_up_) told_up_ = now;
  }
  turned_ = now;
  for (auto& [rank, link] : links_)
    if (!link.closed) read(rank, link, now);
  if (!end_) judge(now);
  // After reading: where a rank is killed the launcher signals the others, and its end may come to
  // them in the same turn.
  stopped_ = stop_signal() != 0;
  if (now < next_beat_) return;
  next_beat_ = now + kBeat;
  std::string& beat = beats_[static_cast<std::size_t>(rank_)];
  beat = beat_();
  const bool full = now >= next_full_;
  if (full) next_full_ = now + static_cast<double>(ranks_.size()) / kFullBeats;
  for (auto& [rank, link] : links_)
    if (!link.closed && link.link.queued() < kBusy)
      link.link.send('B', rank_, full ? beat : std::string());
}

void Pulse::read(int rank, Link& link, double now) {
  std::vector<PulseLink::Frame> frames;
  bool heard = false;
  const bool open = link.link.receive(frames, heard);
  if (heard) link.heard = now;
  for (const PulseLink::Frame& frame : frames)
    take(rank, link, frame, now);
  link.link.flush();
  if (open) return;
  link.closed = true;
  if (!link.left && !stopped_) lost({.kind = "ended", .rank = rank}, now);
}

void Pulse::take(int from, Link& link, const PulseLink::Frame& frame, double now) {
  const auto up = links_.find(parent());
  const bool above = up != links_.end() && !up->second.closed;
  switch (frame.letter) {
    case 'B':
      if (frame.text.empty() || frame.rank < 0 || frame.rank >= static_cast<int>(beats_.size()))
        return;
      beats_[static_cast<std::size_t>(frame.rank)] = frame.text;
      if (above && from != parent() && up->second.link.queued() < kBusy)
        up->second.link.send('B', frame.rank, frame.text);
      return;
    case 'G':
      link.left = now;
      link.why = frame.text;
      return;
    case 'L':
      if (rank_ != 0 && above && !end_)
        up->second.link.send('L', frame.rank, frame.text);
      else
        finish(PulseEnd::from_text(frame.text), now);
      return;
    case 'E':
      finish(PulseEnd::from_text(frame.text), now, from);
      return;
    case 'R':
      link.recorded = true;
      return;
    default:
      return;
  }
}

void Pulse::judge(double now) {
  for (auto& [rank, link] : links_) {
    if (end_) return;
    if (limit_ > 0 && watched(link) && now - link.heard > limit_) {
      PulseEnd end{.kind = "silent", .rank = rank, .seconds = now - link.heard};
      if (const auto answers = link.link.acknowledged(std::max(2.5, limit_ / 2)))
        end.text = *answers ? "process" : "host";
      lost(std::move(end), now);
    } else if (link.left && !link.why.empty() && now - *link.left > kLeftAlone && !stopped_) {
      lost({.kind = "left", .rank = rank, .text = link.why}, now);
    }
  }
  // The hub has not answered.
  if (told_up_ && !end_ && now - *told_up_ > kAnswer) finish(*told_, now);
}

void Pulse::lost(PulseEnd end, double now) {
  if (end_ || told_) return;
  const auto up = links_.find(parent());
  const bool above = up != links_.end() && !up->second.closed && end.rank != parent();
  if (!above) return finish(std::move(end), now);
  up->second.link.send('L', rank_, end.to_text());
  told_up_ = now;
  told_ = std::move(end);
}

void Pulse::report(PulseEnd end, double now) {
  lost(std::move(end), now);
}

/// Whether this rank tells people of the lost `rank`: the hub does, or who cannot reach it. Of the
/// hub the lowest of those tells that watch it, and of its own host the lowest.
bool Pulse::tells_of(int rank) const {
  if (rank_ == 0 || told_ || !links_.contains(parent())) return true;  // there is no way to the hub
  if (rank != 0) return false;
  // A hub that is silent may be one whose host is, with all ranks there.
  const bool here = ranks_[static_cast<std::size_t>(rank_)].first == 0;
  for (int other = 1; other < rank_; ++other)
    if (parent_of(other) == 0 && (ranks_[static_cast<std::size_t>(other)].first == 0) == here)
      return false;
  return parent() == 0;
}

/// `from` is the rank that told this one; -1: none.
void Pulse::finish(PulseEnd end, double now, int from) {
  if (end_) return;
  if (end.message.empty()) {
    end.tells = tells_of(end.rank) && end.kind != "error";
    end.message = words(end);
  }
  end_ = std::move(end);
  ended_ = now;
  // The parent, too, if it has not told: when it runs again, it shall not take this for a loss.
  for (auto& [rank, link] : links_)
    if (rank != from && !link.closed) link.link.send('E', rank_, end_->to_text());
}

bool Pulse::may_go(bool recorded, double now) {
  const double since = now - ended_;
  if (!ready_) {
    bool all = recorded;
    for (const int child : children()) {
      const auto found = links_.find(child);
      if (found == links_.end()) {
        all = all && since > 1;  // it is about to connect, or never does
        continue;
      }
      const Link& link = found->second;
      all = all && (link.recorded || link.closed || now - link.heard > 3);
    }
    if (!all && since < kRecords) return false;
    ready_ = now;
  }
  const auto up = links_.find(parent());
  if (up == links_.end()) return rank_ == 0 || now - *ready_ > 1;
  // Where the way to the hub was lost first, another rank has time to tell.
  if (up->second.closed || end_->rank == parent()) return up->second.recorded || now - *ready_ > 1;
  if (!up->second.recorded) {
    up->second.link.send('R', rank_, "");
    up->second.recorded = true;
  }
  return now - *ready_ > kRecords;
}

void Pulse::leave(const std::string& why) {
  for (auto& [rank, link] : links_)
    if (!link.closed) link.link.send('G', rank_, why);
}

bool Pulse::has_left() {
  return std::ranges::all_of(
      links_, [](auto& one) { return one.second.closed || one.second.link.delivered(); });
}

/// "; rank 4 was last seen in 'step', in all_gather of F32 (31 of 'tp'), after send of F32 (message
/// 5 of 'pp')".
std::string Pulse::did_last(int rank) const {
  const std::string& beat = beats_[static_cast<std::size_t>(rank)];
  if (beat.empty()) return "";
  const Json state = parse_json(beat, "a beat");
  std::string text;
  const auto add = [&](bool inside, const Json& what, std::string_view kind, std::int64_t number,
                       const Json& axis) {
    text += fmt::format("{}{} {} ({}{} of '{}')", text.empty() ? "" : ", ", inside ? "in" : "after",
                        what.get<std::string>(), kind, number, axis.get<std::string>());
  };
  for (const Json& group : state["groups"]) {
    const auto begun = group["begun"].get<std::int64_t>();
    const std::int64_t messages = group.value("messages", std::int64_t{0});
    if (begun > 0)
      add(group["ended"].get<std::int64_t>() < begun, group["what"], "", begun, group["axis"]);
    if (messages > 0)
      add(group["open"].get<std::int64_t>() > 0, group["last"], "message ", messages,
          group["axis"]);
  }
  const auto section = state["section"].get<std::string>();
  return fmt::format("; rank {} was last seen {}{}{}", rank,
                     section.empty() ? "at the start" : "in '" + section + "'",
                     text.empty() ? "" : ", ", text);
}

/// Those that have begun fewer collectives of a group than others of it.
std::string Pulse::behind() const {
  struct One {
    int rank;
    std::int64_t begun;
  };
  std::map<std::pair<int, int>, std::vector<One>> groups;
  std::map<int, std::string> axes;
  for (std::size_t rank = 0; rank < beats_.size(); ++rank) {
    if (beats_[rank].empty()) continue;
    const Json beat = parse_json(beats_[rank], "a beat");
    for (const Json& group : beat["groups"]) {
      const int number = group["group"].get<int>();
      groups[{number, group["first"].get<int>()}].push_back(
          {static_cast<int>(rank), group["begun"].get<std::int64_t>()});
      axes[number] = group["axis"].get<std::string>();
    }
  }
  std::string text;
  for (const auto& [key, ones] : groups) {
    std::int64_t most = 0;
    for (const One& one : ones)
      most = std::max(most, one.begun);
    std::vector<int> late;
    for (const One& one : ones)
      if (one.begun < most) late.push_back(one.rank);
    if (!late.empty())
      text += fmt::format("; {} had not come to collective {} of '{}'", rank_words(late), most,
                          axes[key.first]);
  }
  return text;
}

std::string Pulse::words(const PulseEnd& end) const {
  std::string text;
  const std::string name = end.rank >= 0 ? name_of(end.rank) : "";
  if (end.kind == "silent") {
    text = fmt::format("{} is silent: no sign of life for {:.0f} s", name, end.seconds);
    if (end.text == "process") text += ", while its host answers: the process is stopped or hangs";
    if (end.text == "host") text += ", and its host does not answer: the host or its link is down";
    std::vector<int> there;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank)
      if (parent_of(rank) == end.rank && end.rank != 0) there.push_back(rank);
    if (end.text != "process" && !there.empty())
      text += fmt::format(" (with {})", rank_words(there));
  } else if (end.kind == "ended") {
    text = fmt::format("{} has ended without a word: it was killed, or it crashed", name);
  } else if (end.kind == "left") {
    text = fmt::format("{} has left the run alone: {}", name, end.text);
  } else {
    text = end.text;
  }
  std::vector<int> ranks = end.ranks;
  if (end.rank >= 0) ranks.push_back(end.rank);
  constexpr std::size_t kMost = 4;
  for (std::size_t i = 0; i < ranks.size() && i < kMost; ++i)
    text += did_last(ranks[i]);
  if (ranks.empty()) text += behind();
  return text + "; all ranks end, and the same command continues from the newest checkpoint";
}

}  // namespace vfm::dist
