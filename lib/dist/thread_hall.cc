// SPDX-License-Identifier: Apache-2.0
#include "dist/thread_hall.h"

#include <cstring>

namespace vfm::dist {

void ThreadHall::check() const {
  if (!failure_.empty()) throw OtherRankFailed(failure_);
}

void ThreadHall::check_all() {
  const std::lock_guard lock(mutex_);
  check();
}

void ThreadHall::fail_now(const std::string& why) {
  if (failure_.empty()) failure_ = why;
  changed_.notify_all();
}

void ThreadHall::fail_all(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  fail_now(fmt::format("rank {} failed: {}", rank, why));
}

void ThreadHall::land(End& end) {
  end.landed = true;
  ++ranks_[static_cast<std::size_t>(end.sends ? end.from : end.to)].landed;
}

void ThreadHall::post(End& end) {
  const std::lock_guard lock(mutex_);
  check();
  std::list<End*>& open = open_[{end.group, end.from, end.to, end.tag}];
  if (open.empty() || open.front()->sends == end.sends) {
    open.push_back(&end);
    return;
  }
  End& other = *open.front();
  const End& send = end.sends ? end : other;
  const End& receive = end.sends ? other : end;
  if (send.bytes != receive.bytes) {
    const std::string why = fmt::format("{}: rank {} sends {} bytes to rank {}, which awaits {}",
                                        end.place, end.from, send.bytes, end.to, receive.bytes);
    fail_now(why);
    fail("{}", why);
  }
  std::memcpy(receive.data, send.data, send.bytes);
  open.pop_front();
  land(end);
  land(other);
  changed_.notify_all();
}

void ThreadHall::withdraw(End& end) {
  const std::lock_guard lock(mutex_);
  if (!end.landed) open_[{end.group, end.from, end.to, end.tag}].remove(&end);
}

bool ThreadHall::landed(const End& end) {
  const std::lock_guard lock(mutex_);
  check();
  return end.landed;
}

void ThreadHall::compare(const std::string& group, const std::string& axis, std::int64_t number,
                         int rank, std::size_t of, const std::string& what) {
  const std::lock_guard lock(mutex_);
  check();
  const auto found = said_.try_emplace({group, number}, Said{rank, what, 0}).first;
  Said& first = found->second;
  if (first.what == what) {
    if (++first.times == of) said_.erase(found);
    return;
  }
  const std::string why = fmt::format("call {} of '{}': rank {} calls {}, rank {} {}", number, axis,
                                      first.rank, first.what, rank, what);
  fail_now(why);
  fail("{}", why);
}

bool ThreadHall::stuck() const {
  bool one = false;
  for (const Rank& rank : ranks_) {
    if (rank.left) continue;
    if (rank.landed != rank.looked) return false;
    one = true;
  }
  return one;
}

std::string ThreadHall::places() const {
  std::string text = "all ranks wait";
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    text += fmt::format("{} rank {} {}", r == 0 ? ":" : ",", r,
                        ranks_[r].left ? "has ended" : ranks_[r].place);
  return text;
}

void ThreadHall::wait(int rank, const Running& running, const std::function<bool()>& done) {
  Rank& self = ranks_[static_cast<std::size_t>(rank)];
  for (;;) {
    std::int64_t seen = 0;
    {
      const std::lock_guard lock(mutex_);
      check();
      seen = self.landed;
    }
    if (done()) return;
    std::string place = "in " + running.what().place + " for";
    for (const int other : running.awaited())
      place += fmt::format(" {}", other);
    std::unique_lock lock(mutex_);
    check();
    self.looked = seen;
    self.place = std::move(place);
    if (stuck()) {
      const std::string why = places();
      fail_now(why);
      fail("{}", why);
    }
    changed_.wait(lock, [&] { return self.landed != seen || !failure_.empty(); });
  }
}

void ThreadHall::leave(int rank) {
  const std::lock_guard lock(mutex_);
  ranks_[static_cast<std::size_t>(rank)].left = true;
  // It has not failed itself: those that wait for it are told.
  if (stuck()) fail_now(places());
}

}  // namespace vfm::dist
