// SPDX-License-Identifier: Apache-2.0
#include "base/card_board.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "base/card_map.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"

namespace vfm {
namespace {

constexpr double kLeastLoad = 1e-6;  // seconds; 0 is none

/// Those that have the memory. Throws where none has.
std::vector<Card> fitting(std::vector<Card> cards, const CardNeed& need) {
  if (cards.empty()) fail_usage("there is no card for {}; name some with --devices", need.stage);
  std::int64_t most = 0;
  const auto unfit = [&](const Card& card) {
    most = std::max(most, card.memory);
    return card.memory < need.memory;
  };
  cards.erase(std::remove_if(cards.begin(), cards.end(), unfit), cards.end());
  if (cards.empty())
    fail_usage("{} needs {} bytes of a card's memory, and the cards have {} at most", need.stage,
               need.memory, most);
  for (std::size_t i = 0; i < cards.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (cards[i].name == cards[j].name) fail_usage("card '{}' is named twice", cards[i].name);
  return cards;
}

}  // namespace

struct CardBoard::State {
  State(const std::string& share, std::vector<Card> given, CardNeed what, Actions acts)
      : need(std::move(what)),
        actions(std::move(acts)),
        cards(fitting(std::move(given), need)),
        map(share) {
    map.join(cards, need);
    keeper = std::thread([this] { keep(); });
  }

  Taken take(bool out_of_turn, std::size_t& taken);
  int choose(bool out_of_turn, bool& left) const;
  void give(std::size_t which);
  void leave_out(std::size_t which, const std::string& why, bool item);
  void keep();
  bool act();
  void begin(std::size_t which, CardModel state);
  void load(std::size_t which);
  void unload(std::size_t which);
  void end_thread(std::size_t which);
  std::string reasons();

  const CardNeed need;
  const Actions actions;
  const std::vector<Card> cards;
  CardMap map;
  // Under the file's lock, as the own record:
  bool leaving = false;
  std::map<std::size_t, std::thread> acting;  // by card
  std::vector<std::thread> ended;
  std::vector<std::string> failures;
  std::thread keeper;

  CardRecord& own() const { return map.own(); }
  int place(std::size_t which) const { return map.places()[which]; }
  std::size_t at(std::size_t which) const { return static_cast<std::size_t>(place(which)); }
  CardSet bit(std::size_t which) const { return card_bit(place(which)); }
  std::size_t which(const Lease& lease) const {
    return static_cast<std::size_t>(lease.card - cards.data());
  }
};

CardBoard::CardBoard(const std::string& share, std::vector<Card> cards, CardNeed need,
                     Actions actions)
    : state_(
          std::make_unique<State>(share, std::move(cards), std::move(need), std::move(actions))) {}

CardBoard::~CardBoard() {
  finished();
  {
    const CardMap::Locked lock(state_->map);
    state_->leaving = true;
    call(state_->own().call_keeper, INT_MAX);
  }
  state_->keeper.join();
  state_->map.leave();
}

int CardBoard::cards_left() const {
  const CardMap::Locked lock(state_->map);
  const CardRecord& own = state_->own();
  return std::popcount(own.may & ~own.left_out);
}

const std::vector<Card>& CardBoard::cards() const {
  return state_->cards;
}

int CardBoard::life() const {
  return state_->map.life();
}

std::optional<CardBoard::Lease> CardBoard::take(const std::atomic<bool>* over) {
  State& s = *state_;
  const auto count = [&](int by) {
    const CardMap::Locked lock(s.map);
    CardRecord& own = s.own();
    const double now = card_clock();
    if (own.waiting == 0) own.waits_since = now;
    own.waiting += by;
    if (by > 0) own.finished = 0;
    if (own.waiting == 0) own.counts.short_of += now - own.waits_since;
    if (by > 0) call(own.call_keeper, INT_MAX);
  };
  std::size_t which = 0;
  const bool taken = take_in_turn(s.own().call_items, s.map.file().head.takes, over, count,
                                  [&](bool out_of_turn) { return s.take(out_of_turn, which); });
  return taken ? std::optional(Lease{&s.cards[which]}) : std::nullopt;
}

Taken CardBoard::State::take(bool out_of_turn, std::size_t& taken) {
  const CardMap::Locked lock(map);
  lock.need();
  CardRecord& record = own();
  if ((record.may & ~record.left_out) == 0)
    throw Error(vfm::format("no card is left for {}: {}", need.stage, reasons()),
                ErrorKind::device);
  bool left = false;
  const int card = choose(out_of_turn, left);
  if (card < 0) return left ? Taken::left : Taken::no;
  taken = static_cast<std::size_t>(std::find(map.places().begin(), map.places().end(), card) -
                                   map.places().begin());
  const double now = card_clock();
  if (--record.waiting == 0) record.counts.short_of += now - record.waits_since;
  record.busy |= bit(taken);
  record.since[at(taken)] = now;
  ++map.file().head.takes;
  return Taken::yes;
}

/// A card for an item, as the file numbers it; -1: none.
int CardBoard::State::choose(bool out_of_turn, bool& left) const {
  std::vector<CardClaim> claims = map.claims();
  if (out_of_turn)
    for (std::size_t i = 0; i < claims.size(); ++i)
      if (i != map.own_index()) claims[i].waiting = 0;
  return card_for_item(claims, map.own_index(), map.free(), map.card_places(), &left);
}

/// The item is no longer there; under the lock.
void CardBoard::State::give(std::size_t which) {
  CardRecord& record = own();
  const double now = card_clock();
  const CardItem item{place(which), now - record.since[at(which)]};
  record.busy &= ~bit(which);
  record.counts.busy[at(which)] += item.seconds;
  record.counts.items[at(which)] += 1;
  record.last_item = now;
  std::vector<CardPlace> places = map.card_places();
  if (record.last.seconds > 0) record.counts.squares += compare_items(record.last, item, places);
  record.last = item;
  for (std::size_t c = 0; c < places.size(); ++c)
    map.file().head.speed[c] = places[c].speed;
  if ((record.wanted & bit(which)) == 0) call(record.call_keeper, INT_MAX);
  map.call_for(place(which));
}

void CardBoard::give(const Lease& lease) noexcept {
  const CardMap::Locked lock(state_->map);
  state_->give(state_->which(lease));
}

void CardBoard::fail(const Lease& lease, const std::string& why) {
  state_->leave_out(state_->which(lease), why, true);
}

/// `item`: one is on it, which is given up.
void CardBoard::State::leave_out(std::size_t which, const std::string& why, bool item) {
  {
    const CardMap::Locked lock(map);
    CardRecord& record = own();
    if (item) give(which);
    if ((record.left_out & bit(which)) != 0) return;
    record.left_out |= bit(which);
    record.wanted &= ~bit(which);
    record.model[at(which)] = CardModel::none;
    failures.push_back(vfm::format("'{}': {}", cards[which].name, why));
    call(record.call_items, INT_MAX);
    for (CardRecord& other : map.file().records)
      call(other.call_keeper, INT_MAX);
  }
  log_warning("card '{}' is left out for {} from now on: {}", cards[which].name, need.stage, why);
}

std::string CardBoard::State::reasons() {
  std::string all;
  for (const std::string& failure : failures)
    all += (all.empty() ? "" : "; ") + failure;
  return all;
}

void CardBoard::finished() noexcept {
  const CardMap::Locked lock(state_->map);
  state_->own().finished = 1;
  state_->own().wanted = 0;
  call(state_->own().call_keeper, INT_MAX);
}

/// The board's thread: what a program of the pipe has to do every 50 ms.
void CardBoard::State::keep() {
  for (;;) {
    const std::uint32_t seen = own().call_keeper;
    std::vector<std::thread> over;
    bool done = false;
    {
      const CardMap::Locked lock(map);
      own().beat = card_clock();
      if (!lock.stops()) {
        map.end_dead();
        map.plan();
      }
      done = act();
      over.swap(ended);
    }
    for (std::thread& thread : over)
      thread.join();
    if (done) return;
    wait_for_call(own().call_keeper, seen);
  }
}

/// Begins what is to be done to models. True: nothing is, nor will be.
bool CardBoard::State::act() {
  const CardRecord& record = own();
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const CardModel model = record.model[at(i)];
    const bool wanted = (record.wanted & bit(i)) != 0;
    if (model == CardModel::loaded && !wanted && ((record.busy & bit(i)) == 0 || leaving)) {
      begin(i, CardModel::unloading);
    } else if (model == CardModel::none && wanted && record.waiting > 0 && !leaving &&
               !stop_requested() && acting.count(i) == 0 &&
               map.loaded_memory(place(i)) + need.memory <= map.memory(place(i))) {
      begin(i, CardModel::loading);
    }
  }
  const bool none = std::all_of(record.model.begin(), record.model.end(),
                                [](CardModel model) { return model == CardModel::none; });
  return leaving && none && acting.empty();
}

void CardBoard::State::begin(std::size_t which, CardModel state) {
  own().model[at(which)] = state;
  acting.emplace(which, std::thread([this, which, state] {
                   state == CardModel::loading ? load(which) : unload(which);
                 }));
}

/// A thread of its own, as of unload().
void CardBoard::State::load(std::size_t which) {
  const double begin = card_clock();
  std::string why;
  bool stopped = false;
  try {
    if (actions.load) actions.load(cards[which]);
  } catch (const Stopped&) {
    stopped = true;
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (!why.empty()) leave_out(which, why, false);
  const CardMap::Locked lock(map);
  CardRecord& record = own();
  if (why.empty() && !stopped) {
    const double now = card_clock();
    record.model[at(which)] = CardModel::loaded;
    record.load_seconds = std::max(now - begin, kLeastLoad);
    map.file().head.changed = now;
    map.call_for(place(which));
    call(record.call_items, INT_MAX);
  } else {
    record.model[at(which)] = CardModel::none;
  }
  end_thread(which);
}

void CardBoard::State::unload(std::size_t which) {
  try {
    if (actions.unload) actions.unload(cards[which]);
  } catch (const Stopped&) {
  } catch (const std::exception& error) {
    log_warning("cannot unload the model of {} from card '{}': {}", need.stage, cards[which].name,
                error.what());
  }
  const CardMap::Locked lock(map);
  own().model[at(which)] = CardModel::none;
  for (CardRecord& record : map.file().records)
    call(record.call_keeper, INT_MAX);
  end_thread(which);
}

/// Of the thread that acts on the card, at its end; under the lock.
void CardBoard::State::end_thread(std::size_t which) {
  const auto own_thread = acting.find(which);
  ended.push_back(std::move(own_thread->second));
  acting.erase(own_thread);
  call(own().call_keeper, INT_MAX);
}

}  // namespace vfm
