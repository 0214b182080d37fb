// The part of CardBoard by which an item takes a card, or sessions of a card.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "share/card_board_state.h"
#include "share/shared_file.h"

namespace vfm::share {

/// So many more items wait; under the file's lock, as all that follows but await().
void CardBoard::State::count_waiting(int by) {
  CardRecord& record = own();
  const double now = card_clock();
  if (record.waiting == 0) record.waits_since = now;
  record.waiting += by;
  if (record.waiting == 0) record.counts.short_of += now - record.waits_since;
  if (by <= 0) return;
  record.finished = 0;
  call(record.call_keeper, INT_MAX);
}

/// False where `over` becomes true; `never` becomes that where no card will have the sessions.
/// Items of a model have their turn in the order in which they came: whoever has just given a card
/// back, and is awake, would else have it again and again, while results that are handed on in
/// order wait for an item that is asleep.
bool CardBoard::State::await(Lease& lease, const std::atomic<bool>* over,
                             std::atomic<bool>* never) {
  const auto count = [&](int by) {
    const CardMap::Locked lock(map);
    count_waiting(by);
  };
  const auto try_one = [&](bool out_of_turn) {
    const CardMap::Locked lock(map);
    lock.need();
    const Taken taken = take(out_of_turn, lease);
    if (never && taken != Taken::yes) *never = most_sessions() < lease.sessions;
    return taken;
  };
  count(1);
  std::optional<WaitingLine::Place> place;
  try {
    if (computes()) place.emplace(line);
    while (place && !place->await_first(std::chrono::nanoseconds(kSharedTurn))) {
      check_stop();
      if (!over || !*over) continue;
      count(-1);
      return false;
    }
  } catch (...) {
    count(-1);
    throw;
  }
  const auto count_end = [&](int by) {  // it is counted already
    if (by < 0) count(by);
  };
  return take_in_turn(own().call_items, takes(), over, count_end, try_one);
}

std::optional<CardBoard::Lease> CardBoard::take(const std::atomic<bool>* over) {
  Lease lease;
  return state_->await(lease, over, nullptr) ? std::optional(lease) : std::nullopt;
}

std::optional<CardBoard::Lease> CardBoard::take_sessions(int count, bool wait) {
  State& s = *state_;
  Lease lease{nullptr, count};
  {
    // Who does not wait is not to lose the time of a turn.
    const CardMap::Locked lock(s.map);
    lock.need();
    s.check_left();
    s.count_waiting(1);
    if (s.take(false, lease) == Taken::yes) return lease;
    s.count_waiting(-1);
    if (!wait || s.most_sessions() < count) return std::nullopt;
  }
  std::atomic<bool> never = false;
  return s.await(lease, &never, &never) ? std::optional(lease) : std::nullopt;
}

int CardBoard::most_sessions() const {
  const CardMap::Locked lock(state_->map);
  return state_->most_sessions();
}

/// More than a card will have, beside the models that are loaded there, nobody is to wait for.
int CardBoard::State::most_sessions() const {
  const CardRecord& record = own();
  int most = 0;
  for (std::size_t i = 0; i < cards.size(); ++i)
    if ((record.left_out & bit(i)) == 0)
      most = std::max(most, map.most_sessions(place(i), need.kind));
  return most;
}

void CardBoard::State::check_left() {
  if ((own().may & ~own().left_out) == 0)
    throw Error(vfm::format("no device is left for {}: {}", need.stage, reasons()),
                ErrorKind::device);
}

/// For the item, `taken.sessions` of them.
Taken CardBoard::State::take(bool out_of_turn, Lease& taken) {
  check_left();
  bool left = false;
  const int card = choose(out_of_turn, taken.sessions, left);
  if (card < 0) return left ? Taken::left : Taken::no;
  const auto which = static_cast<std::size_t>(
      std::find(map.places().begin(), map.places().end(), card) - map.places().begin());
  taken.card = &cards[which];
  CardRecord& record = own();
  record.items[at(which)] += taken.sessions;
  record.since[at(which)] += taken.sessions * card_clock();
  count_waiting(-1);
  ++takes();
  return Taken::yes;
}

/// A card for an item, as the file numbers it; -1: none.
int CardBoard::State::choose(bool out_of_turn, int sessions, bool& left) const {
  std::vector<CardClaim> claims = map.claims(need.kind);
  std::vector<CardPlace> places = map.card_places();
  CardSet free = map.free();
  if (!computes()) {
    // That which has most of them free.
    free = 0;
    for (std::size_t c = 0; c < places.size(); ++c) {
      const int some = map.free_sessions(static_cast<int>(c), need.kind);
      if (some >= sessions) free |= card_bit(static_cast<int>(c));
      places[c].speed = some;
    }
  }
  if (out_of_turn)
    for (std::size_t i = 0; i < claims.size(); ++i)
      if (i != map.own_index()) claims[i].waiting = 0;
  return card_for_item(claims, map.own_index(), free, places, &left);
}

}  // namespace vfm::share
