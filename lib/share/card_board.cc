// SPDX-License-Identifier: Apache-2.0
#include "share/card_board.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/units.h"
#include "share/card_map.h"
#include "share/shared_file.h"

namespace vfm::share {

/// A line of threads that wait for one thing. They leave it in the order in which they came.
class WaitingLine {
 public:
  /// The place of one thread. It begins at the end of the line. When the first place is destroyed,
  /// the next one wakes, and no other.
  class Place {
   public:
    explicit Place(WaitingLine& line);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Waits until this place is the first, for `most` at the longest. Returns whether it is.
    bool await_first(std::chrono::nanoseconds most);

   private:
    WaitingLine& line_;
    std::condition_variable first_;
    std::list<Place*>::iterator at_;
  };

 private:
  std::mutex mutex_;
  std::list<Place*> places_;
};

WaitingLine::Place::Place(WaitingLine& line) : line_(line) {
  const std::lock_guard lock(line.mutex_);
  at_ = line.places_.insert(line.places_.end(), this);
}

WaitingLine::Place::~Place() {
  const std::lock_guard lock(line_.mutex_);
  const bool first = line_.places_.front() == this;
  line_.places_.erase(at_);
  // Under the lock: the other cannot leave, and its condition with it, before it is called.
  if (first && !line_.places_.empty()) line_.places_.front()->first_.notify_one();
}

bool WaitingLine::Place::await_first(std::chrono::nanoseconds most) {
  std::unique_lock lock(line_.mutex_);
  return first_.wait_for(lock, most, [this] { return line_.places_.front() == this; });
}

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
  if (cards.empty()) fail_usage("no device is given for {}; name some with --device", need.stage);
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

/// Cards are numbered as the program gave them; place() is a card's number in the file.
struct CardBoard::State {
  State(const std::string& share, std::vector<Card> given, CardNeed what, Actions acts);

  // How an item gets a card, or sessions of one:
  bool await(Lease& lease, const std::atomic<bool>* over, std::atomic<bool>* never);
  void count_waiting(int by);
  void check_left();
  Taken take(bool out_of_turn, Lease& taken);
  int choose(bool out_of_turn, int sessions, bool& left) const;
  int most_sessions() const;

  // What it gives back, and what becomes of cards:
  void give(std::size_t which, int sessions);
  void leave_out(std::size_t which, const std::string& why, const Lease* item);
  void keep();
  bool act();
  void begin(std::size_t which, CardModel state);
  void load(std::size_t which);
  void unload(std::size_t which);
  void end_thread(std::size_t which);
  std::string reasons();
  std::string lack_of_memory();

  const CardNeed need;
  const Actions actions;
  const std::vector<Card> cards;
  CardMap map;
  WaitingLine line;  // of items that wait for a card
  // Guarded by the file's lock, like own():
  bool leaving = false;
  std::map<std::size_t, std::thread> acting;  // by card
  std::vector<std::thread> ended;
  std::vector<std::string> failures;
  double lacks_since = 0;  // when items began to wait for memory; 0: none waits
  bool lack_told = false;
  std::thread keeper;

  CardRecord& own() const { return map.own(); }
  std::atomic<std::uint32_t>& takes() const {
    return map.file().head.takes[static_cast<std::size_t>(need.kind)];
  }
  int place(std::size_t which) const { return map.places()[which]; }
  std::size_t at(std::size_t which) const { return static_cast<std::size_t>(place(which)); }
  CardSet bit(std::size_t which) const { return card_bit(place(which)); }
  std::size_t which(const Lease& lease) const {
    return static_cast<std::size_t>(lease.card - cards.data());
  }
  bool computes() const { return need.kind == CardKind::compute; }
};

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
    record.counts.count_length(now - since);
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
      places[c].sessions = some;
    }
  }
  if (out_of_turn)
    for (std::size_t i = 0; i < claims.size(); ++i)
      if (i != map.own_index()) claims[i].waiting = 0;
  return card_for_item(claims, map.own_index(), free, places, &left);
}

}  // namespace vfm::share
