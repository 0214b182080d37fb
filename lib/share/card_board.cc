// SPDX-License-Identifier: Apache-2.0
#include "share/card_board.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <exception>
#include <functional>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "share/card_board_state.h"

namespace vfm::share {
namespace {

constexpr double kLeastLoad = 1e-6;  // seconds; 0 is none
constexpr double kUntilTold = 5;     // seconds that items wait for memory

std::string memory_text(std::int64_t bytes) {
  return format_bytes(static_cast<double>(std::max<std::int64_t>(bytes, 0)));
}

/// What it must have of a card: a model, or what sessions stand on, with all of these.
std::int64_t least_memory(const Card& card, const CardNeed& need) {
  return need.memory + (need.kind == CardKind::compute ? card.kept : card.sessions * kSessionBytes);
}

/// Those that have sessions where these are needed. Throws where none has.
std::vector<Card> with_sessions(std::vector<Card> cards, const CardNeed& need) {
  if (need.kind == CardKind::compute) return cards;
  std::erase_if(cards, [](const Card& card) { return card.sessions == 0; });
  if (cards.empty())
    fail_usage("none of the devices can {}, which {} needs",
               need.kind == CardKind::decode ? "decode" : "encode", need.stage);
  return cards;
}

/// Those that have the memory; of each that has not the log tells. Throws where none has.
std::vector<Card> fitting(std::vector<Card> cards, const CardNeed& need) {
  if (cards.empty()) fail_usage("there is no device for {}; name some with --device", need.stage);
  cards = with_sessions(std::move(cards), need);
  std::int64_t least = least_memory(cards.front(), need), most = 0;
  const auto unfit = [&](const Card& card) {
    least = std::min(least, least_memory(card, need));
    most = std::max(most, card.memory);
    return card.memory < least_memory(card, need);
  };
  const auto end = std::stable_partition(cards.begin(), cards.end(), std::not_fn(unfit));
  const bool computes = need.kind == CardKind::compute;
  if (end == cards.begin())
    fail_usage(
        "{} needs {} of a device's memory for {}, and the devices have {} at most; name a device "
        "that has more with --device{}",
        need.stage, memory_text(least),
        computes ? "its models and their work" : "videos that a device works on", memory_text(most),
        computes ? ", or take smaller models, or clips, or pictures" : "");
  for (auto card = end; card != cards.end(); ++card)
    log_warning("device '{}' is not used: {} needs {} of its memory, and it has {}", card->name,
                need.stage, memory_text(least_memory(*card, need)), memory_text(card->memory));
  cards.erase(end, cards.end());
  for (std::size_t i = 0; i < cards.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (cards[i].name == cards[j].name) fail_usage("device '{}' is named twice", cards[i].name);
  return cards;
}

}  // namespace

CardBoard::State::State(const std::string& share, std::vector<Card> given, CardNeed what,
                        Actions acts)
    : need(std::move(what)),
      actions(std::move(acts)),
      cards(fitting(std::move(given), need)),
      map(share) {
  map.join(cards, need);
  keeper = std::thread([this] { keep(); });
}

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

/// The item is no longer there; under the lock.
void CardBoard::State::give(std::size_t which, int sessions) {
  CardRecord& record = own();
  const double now = card_clock();
  // Of sessions, which are alike for this, their mean begin.
  const double since = record.since[at(which)] / record.items[at(which)];
  record.items[at(which)] -= sessions;
  record.since[at(which)] = record.items[at(which)] * since;
  record.counts.busy[at(which)] += sessions * (now - since);
  record.counts.items[at(which)] += 1;
  record.last_item = now;
  if (computes()) {
    const CardItem item{place(which), now - since};
    std::vector<CardPlace> places = map.card_places();
    if (record.last.seconds > 0) record.counts.squares += compare_items(record.last, item, places);
    record.last = item;
    for (std::size_t c = 0; c < places.size(); ++c)
      map.file().head.speed[c] = places[c].speed;
    if ((record.wanted & bit(which)) == 0) call(record.call_keeper, INT_MAX);
  }
  map.call_for(place(which));
}

void CardBoard::give(const Lease& lease) noexcept {
  const CardMap::Locked lock(state_->map);
  state_->give(state_->which(lease), lease.sessions);
}

void CardBoard::fail(const Lease& lease, const std::string& why) {
  state_->leave_out(state_->which(lease), why, &lease);
}

/// `item`: what is on it is given up.
void CardBoard::State::leave_out(std::size_t which, const std::string& why, const Lease* item) {
  {
    const CardMap::Locked lock(map);
    CardRecord& record = own();
    if (item) give(which, item->sessions);
    if ((record.left_out & bit(which)) != 0) return;
    record.left_out |= bit(which);
    record.wanted &= ~bit(which);
    record.model[at(which)] = CardModel::none;
    failures.push_back(vfm::format("'{}': {}", cards[which].name, why));
    call(record.call_items, INT_MAX);
    for (CardRecord& other : map.file().records)
      call(other.call_keeper, INT_MAX);
  }
  // No record of a run tells it, so it is said also where warnings are not.
  log_error("device '{}' is left out for {} from now on: {}", cards[which].name, need.stage, why);
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
    std::string lack;
    bool done = false;
    {
      const CardMap::Locked lock(map);
      own().beat = card_clock();
      if (need.flow) {
        own().counts.ready = static_cast<double>(need.flow->ready);
        own().counts.handed = static_cast<double>(need.flow->handed);
      }
      if (!lock.stops()) {
        map.end_dead();
        map.plan();
        lack = lack_of_memory();
      }
      done = act();
      over.swap(ended);
    }
    if (!lack.empty()) log_warning("{}", lack);
    for (std::thread& thread : over)
      thread.join();
    if (done) return;
    wait_for_call(own().call_keeper, seen);
  }
}

/// What is to be said, once, where items wait for memory for long: the model is on no card, nor on
/// its way to one.
std::string CardBoard::State::lack_of_memory() {
  const CardRecord& record = own();
  const bool none = std::all_of(record.model.begin(), record.model.end(),
                                [](CardModel model) { return model == CardModel::none; });
  const double now = card_clock();
  const bool lacks = computes() && record.waiting > 0 && none && !leaving;
  if (!lacks || lacks_since == 0) lacks_since = lacks ? now : 0;
  if (!lacks || lack_told || now - lacks_since < kUntilTold) return {};
  lack_told = true;
  std::size_t best = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const std::int64_t free = map.model_memory(place(i)) - map.loaded_memory(place(i));
    if ((record.left_out & bit(i)) == 0 && free > most) best = i, most = free;
  }
  std::string others;
  for (const std::string& name : map.names_on(place(best)))
    others += (others.empty() ? " beside the models of " : ", ") + name;
  return vfm::format(
      "waiting for memory of a device: {} needs {}, and of device '{}' {} are free{}; it goes on "
      "when "
      "programs that have memory have no work for a while, or end",
      need.stage, memory_text(need.memory), cards[best].name, memory_text(most), others);
}

/// Begins what is to be done to models. True: nothing is, nor will be.
bool CardBoard::State::act() {
  const CardRecord& record = own();
  for (std::size_t i = 0; i < cards.size() && computes(); ++i) {
    const CardModel model = record.model[at(i)];
    const bool wanted = (record.wanted & bit(i)) != 0;
    if (model == CardModel::loaded && !wanted && (record.items[at(i)] == 0 || leaving)) {
      begin(i, CardModel::unloading);
    } else if (model == CardModel::none && wanted && record.waiting > 0 && !leaving &&
               !stop_requested() && acting.count(i) == 0 &&
               map.loaded_memory(place(i)) + need.memory <= map.model_memory(place(i))) {
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
  if (!why.empty()) leave_out(which, why, nullptr);
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
    log_warning("cannot unload the model of {} from device '{}': {}", need.stage, cards[which].name,
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

}  // namespace vfm::share
