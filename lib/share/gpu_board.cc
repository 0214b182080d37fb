// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_board.h"

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
#include "share/gpu_map.h"
#include "share/shared_file.h"

namespace vfm::share {

/// A queue of waiting threads.
class WaitingLine {
 public:
  /// The place of one thread, at the end of the queue at first. When the first place is destroyed,
  /// only the thread of the next place wakes.
  class Place {
   public:
    explicit Place(WaitingLine& line);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Waits for at most `most` until this place is the first. Returns whether it is the first.
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
  // Notified under the lock, so that the other place cannot be destroyed before.
  if (first && !line_.places_.empty()) line_.places_.front()->first_.notify_one();
}

bool WaitingLine::Place::await_first(std::chrono::nanoseconds most) {
  std::unique_lock lock(line_.mutex_);
  return first_.wait_for(lock, most, [this] { return line_.places_.front() == this; });
}

namespace {

constexpr double kLeastLoad = 1e-6;  // seconds; GpuRecord::load_seconds is 0 before the first load
constexpr double kUntilTold = 5;     // seconds of waiting for memory before a warning

std::string memory_text(std::int64_t bytes) {
  return format_bytes(static_cast<double>(std::max<std::int64_t>(bytes, 0)));
}

/// Returns the memory that a GPU must have: for the model and this program's sessions, or for the
/// CUDA context and all sessions.
std::int64_t least_memory(const SharedGpu& gpu, const GpuNeed& need) {
  return need.memory + (need.kind == GpuKind::compute ? gpu.kept : gpu.sessions * kSessionBytes);
}

/// Returns the GPUs that have sessions, if `need` is for sessions. Throws Error{usage} if none has.
std::vector<SharedGpu> with_sessions(std::vector<SharedGpu> gpus, const GpuNeed& need) {
  if (need.kind == GpuKind::compute) return gpus;
  std::erase_if(gpus, [](const SharedGpu& gpu) { return gpu.sessions == 0; });
  if (gpus.empty())
    fail_usage("none of the devices can {}, which {} needs",
               need.kind == GpuKind::decode ? "decode" : "encode", need.stage);
  return gpus;
}

/// Returns the GPUs with enough memory, and warns about the others. Throws Error{usage} if no GPU
/// has enough.
std::vector<SharedGpu> fitting(std::vector<SharedGpu> gpus, const GpuNeed& need) {
  if (gpus.empty()) fail_usage("no device is given for {}; name some with --device", need.stage);
  gpus = with_sessions(std::move(gpus), need);
  std::int64_t least = least_memory(gpus.front(), need), most = 0;
  const auto unfit = [&](const SharedGpu& gpu) {
    least = std::min(least, least_memory(gpu, need));
    most = std::max(most, gpu.memory);
    return gpu.memory < least_memory(gpu, need);
  };
  const auto end = std::stable_partition(gpus.begin(), gpus.end(), std::not_fn(unfit));
  const bool computes = need.kind == GpuKind::compute;
  if (end == gpus.begin())
    fail_usage(
        "{} needs {} of a device's memory for {}, and the devices have {} at most; name a device "
        "that has more with --device{}",
        need.stage, memory_text(least),
        computes ? "its models and their work" : "videos that a device works on", memory_text(most),
        computes ? ", or take smaller models, or clips, or pictures" : "");
  for (auto gpu = end; gpu != gpus.end(); ++gpu)
    log_warning("device '{}' is not used: {} needs {} of its memory, and it has {}", gpu->name,
                need.stage, memory_text(least_memory(*gpu, need)), memory_text(gpu->memory));
  gpus.erase(end, gpus.end());
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (gpus[i].name == gpus[j].name) fail_usage("device '{}' is named twice", gpus[i].name);
  return gpus;
}

}  // namespace

/// `which` is an index into `gpus`. place() is the GPU's number in the file.
struct GpuBoard::State {
  State(const std::string& share, std::vector<SharedGpu> given, GpuNeed what, Actions acts);

  // Called when an item takes a GPU or sessions:
  bool await(Lease& lease, const std::atomic<bool>* over, std::atomic<bool>* never);
  void count_waiting(int by);
  void check_left();
  Taken take(bool out_of_turn, Lease& taken);
  int choose(bool out_of_turn, int sessions, bool& left) const;
  int most_sessions() const;

  // Called when an item gives a GPU back, and to load and unload models:
  void give(std::size_t which, int sessions);
  void leave_out(std::size_t which, const std::string& why, const Lease* item);
  void keep();
  bool act();
  void begin(std::size_t which, GpuModel state);
  void load(std::size_t which);
  void unload(std::size_t which);
  void end_thread(std::size_t which);
  std::string reasons();
  std::string lack_of_memory();

  const GpuNeed need;
  const Actions actions;
  const std::vector<SharedGpu> gpus;
  GpuMap map;
  WaitingLine line;  // items that wait for a GPU
  // Guarded by the file's lock, like own():
  bool leaving = false;
  std::map<std::size_t, std::thread> acting;  // threads that load or unload, for each GPU
  std::vector<std::thread> ended;
  std::vector<std::string> failures;
  double lacks_since = 0;  // time since items wait for memory, or 0
  bool lack_told = false;
  std::thread keeper;

  GpuRecord& own() const { return map.own(); }
  std::atomic<std::uint32_t>& takes() const {
    return map.file().head.takes[static_cast<std::size_t>(need.kind)];
  }
  int place(std::size_t which) const { return map.places()[which]; }
  std::size_t at(std::size_t which) const { return static_cast<std::size_t>(place(which)); }
  GpuSet bit(std::size_t which) const { return gpu_bit(place(which)); }
  std::size_t which(const Lease& lease) const {
    return static_cast<std::size_t>(lease.gpu - gpus.data());
  }
  bool computes() const { return need.kind == GpuKind::compute; }
};

GpuBoard::State::State(const std::string& share, std::vector<SharedGpu> given, GpuNeed what,
                       Actions acts)
    : need(std::move(what)),
      actions(std::move(acts)),
      gpus(fitting(std::move(given), need)),
      map(share) {
  map.join(gpus, need);
  keeper = std::thread([this] { keep(); });
}

GpuBoard::GpuBoard(const std::string& share, std::vector<SharedGpu> gpus, GpuNeed need,
                   Actions actions)
    : state_(std::make_unique<State>(share, std::move(gpus), std::move(need), std::move(actions))) {
}

GpuBoard::~GpuBoard() {
  finished();
  {
    const GpuMap::Locked lock(state_->map);
    state_->leaving = true;
    call(state_->own().call_keeper, INT_MAX);
  }
  state_->keeper.join();
  state_->map.leave();
}

int GpuBoard::gpus_left() const {
  const GpuMap::Locked lock(state_->map);
  const GpuRecord& own = state_->own();
  return std::popcount(own.may & ~own.left_out);
}

const std::vector<SharedGpu>& GpuBoard::gpus() const {
  return state_->gpus;
}

int GpuBoard::life() const {
  return state_->map.life();
}

/// Needs the file's lock.
void GpuBoard::State::give(std::size_t which, int sessions) {
  GpuRecord& record = own();
  const double now = gpu_clock();
  // For sessions, the mean of their start times, since the record has only the sum.
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

void GpuBoard::give(const Lease& lease) noexcept {
  const GpuMap::Locked lock(state_->map);
  state_->give(state_->which(lease), lease.sessions);
}

void GpuBoard::fail(const Lease& lease, const std::string& why) {
  state_->leave_out(state_->which(lease), why, &lease);
}

/// Gives `item` back, if not null.
void GpuBoard::State::leave_out(std::size_t which, const std::string& why, const Lease* item) {
  {
    const GpuMap::Locked lock(map);
    GpuRecord& record = own();
    if (item) give(which, item->sessions);
    if ((record.left_out & bit(which)) != 0) return;
    record.left_out |= bit(which);
    record.wanted &= ~bit(which);
    record.model[at(which)] = GpuModel::none;
    failures.push_back(vfm::format("'{}': {}", gpus[which].name, why));
    call(record.call_items, INT_MAX);
    for (GpuRecord& other : map.file().records)
      call(other.call_keeper, INT_MAX);
  }
  // An error and not a warning, since the records of a run do not report it.
  log_error("device '{}' is left out for {} from now on: {}", gpus[which].name, need.stage, why);
}

std::string GpuBoard::State::reasons() {
  std::string all;
  for (const std::string& failure : failures)
    all += (all.empty() ? "" : "; ") + failure;
  return all;
}

void GpuBoard::finished() noexcept {
  const GpuMap::Locked lock(state_->map);
  state_->own().finished = 1;
  state_->own().wanted = 0;
  call(state_->own().call_keeper, INT_MAX);
}

/// Runs in the thread `keeper`, with a turn every 50 ms.
void GpuBoard::State::keep() {
  for (;;) {
    const std::uint32_t seen = own().call_keeper;
    std::vector<std::thread> over;
    std::string lack;
    bool done = false;
    {
      const GpuMap::Locked lock(map);
      own().beat = gpu_clock();
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

/// Returns a warning, once, if items have waited kUntilTold seconds for memory for their model.
/// Otherwise returns "".
std::string GpuBoard::State::lack_of_memory() {
  const GpuRecord& record = own();
  const bool none = std::all_of(record.model.begin(), record.model.end(),
                                [](GpuModel model) { return model == GpuModel::none; });
  const double now = gpu_clock();
  const bool lacks = computes() && record.waiting > 0 && none && !leaving;
  if (!lacks || lacks_since == 0) lacks_since = lacks ? now : 0;
  if (!lacks || lack_told || now - lacks_since < kUntilTold) return {};
  lack_told = true;
  std::size_t best = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const std::int64_t free = map.model_memory(place(i)) - map.loaded_memory(place(i));
    if ((record.left_out & bit(i)) == 0 && free > most) best = i, most = free;
  }
  std::string others;
  for (const std::string& name : map.names_on(place(best)))
    others += (others.empty() ? " beside the models of " : ", ") + name;
  return vfm::format(
      "waiting for memory of a device: {} needs {}, and of device '{}' {} are free{}; it goes on "
      "when programs that have memory have no work for a while, or end",
      need.stage, memory_text(need.memory), gpus[best].name, memory_text(most), others);
}

/// Starts threads that load and unload models. Returns whether the program is leaving and all its
/// models are unloaded.
bool GpuBoard::State::act() {
  const GpuRecord& record = own();
  for (std::size_t i = 0; i < gpus.size() && computes(); ++i) {
    const GpuModel model = record.model[at(i)];
    const bool wanted = (record.wanted & bit(i)) != 0;
    if (model == GpuModel::loaded && !wanted && (record.items[at(i)] == 0 || leaving)) {
      begin(i, GpuModel::unloading);
    } else if (model == GpuModel::none && wanted && record.waiting > 0 && !leaving &&
               !stop_requested() && acting.count(i) == 0 &&
               map.loaded_memory(place(i)) + need.memory <= map.model_memory(place(i))) {
      begin(i, GpuModel::loading);
    }
  }
  const bool none = std::all_of(record.model.begin(), record.model.end(),
                                [](GpuModel model) { return model == GpuModel::none; });
  return leaving && none && acting.empty();
}

void GpuBoard::State::begin(std::size_t which, GpuModel state) {
  own().model[at(which)] = state;
  acting.emplace(which, std::thread([this, which, state] {
                   state == GpuModel::loading ? load(which) : unload(which);
                 }));
}

void GpuBoard::State::load(std::size_t which) {
  const double begin = gpu_clock();
  std::string why;
  bool stopped = false;
  try {
    if (actions.load) actions.load(gpus[which]);
  } catch (const Stopped&) {
    stopped = true;
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (!why.empty()) leave_out(which, why, nullptr);
  const GpuMap::Locked lock(map);
  GpuRecord& record = own();
  if (why.empty() && !stopped) {
    const double now = gpu_clock();
    record.model[at(which)] = GpuModel::loaded;
    record.load_seconds = std::max(now - begin, kLeastLoad);
    map.file().head.changed = now;
    map.call_for(place(which));
    call(record.call_items, INT_MAX);
  } else {
    record.model[at(which)] = GpuModel::none;
  }
  end_thread(which);
}

void GpuBoard::State::unload(std::size_t which) {
  try {
    if (actions.unload) actions.unload(gpus[which]);
  } catch (const Stopped&) {
  } catch (const std::exception& error) {
    log_warning("cannot unload the model of {} from device '{}': {}", need.stage, gpus[which].name,
                error.what());
  }
  const GpuMap::Locked lock(map);
  own().model[at(which)] = GpuModel::none;
  for (GpuRecord& record : map.file().records)
    call(record.call_keeper, INT_MAX);
  end_thread(which);
}

/// The thread that loads or unloads calls it at its end, with the file's lock.
void GpuBoard::State::end_thread(std::size_t which) {
  const auto own_thread = acting.find(which);
  ended.push_back(std::move(own_thread->second));
  acting.erase(own_thread);
  call(own().call_keeper, INT_MAX);
}

/// Needs the file's lock, as all functions of State below except await().
void GpuBoard::State::count_waiting(int by) {
  GpuRecord& record = own();
  const double now = gpu_clock();
  if (record.waiting == 0) record.waits_since = now;
  record.waiting += by;
  if (record.waiting == 0) record.counts.short_of += now - record.waits_since;
  if (by <= 0) return;
  record.finished = 0;
  call(record.call_keeper, INT_MAX);
}

/// Returns false if `over` becomes true. Sets `never` if no GPU can have the sessions. Items of a
/// model take turns in order. Otherwise a thread that has just given a GPU back, and is awake,
/// would take the GPU again and again, while results wait for an earlier item whose thread sleeps.
bool GpuBoard::State::await(Lease& lease, const std::atomic<bool>* over, std::atomic<bool>* never) {
  const auto count = [&](int by) {
    const GpuMap::Locked lock(map);
    count_waiting(by);
  };
  const auto try_one = [&](bool out_of_turn) {
    const GpuMap::Locked lock(map);
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
  const auto count_end = [&](int by) {  // The waiter has been counted above.
    if (by < 0) count(by);
  };
  return take_in_turn(own().call_items, takes(), over, count_end, try_one);
}

std::optional<GpuBoard::Lease> GpuBoard::take(const std::atomic<bool>* over) {
  Lease lease;
  return state_->await(lease, over, nullptr) ? std::optional(lease) : std::nullopt;
}

std::optional<GpuBoard::Lease> GpuBoard::take_sessions(int count, bool wait) {
  State& s = *state_;
  Lease lease{nullptr, count};
  {
    // A first try without await(), which can take the time of a turn.
    const GpuMap::Locked lock(s.map);
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

int GpuBoard::most_sessions() const {
  const GpuMap::Locked lock(state_->map);
  return state_->most_sessions();
}

int GpuBoard::State::most_sessions() const {
  const GpuRecord& record = own();
  int most = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    if ((record.left_out & bit(i)) == 0)
      most = std::max(most, map.most_sessions(place(i), need.kind));
  return most;
}

void GpuBoard::State::check_left() {
  if ((own().may & ~own().left_out) == 0)
    throw Error(vfm::format("no device is left for {}: {}", need.stage, reasons()),
                ErrorKind::device);
}

Taken GpuBoard::State::take(bool out_of_turn, Lease& taken) {
  check_left();
  bool left = false;
  const int gpu = choose(out_of_turn, taken.sessions, left);
  if (gpu < 0) return left ? Taken::left : Taken::no;
  const auto which = static_cast<std::size_t>(
      std::find(map.places().begin(), map.places().end(), gpu) - map.places().begin());
  taken.gpu = &gpus[which];
  GpuRecord& record = own();
  record.items[at(which)] += taken.sessions;
  record.since[at(which)] += taken.sessions * gpu_clock();
  count_waiting(-1);
  ++takes();
  return Taken::yes;
}

/// Returns the number in the file of a GPU for an item, or -1.
int GpuBoard::State::choose(bool out_of_turn, int sessions, bool& left) const {
  std::vector<GpuClaim> claims = map.claims(need.kind);
  std::vector<GpuPlace> places = map.gpu_places();
  GpuSet free = map.free();
  if (!computes()) {
    free = 0;
    for (std::size_t c = 0; c < places.size(); ++c) {
      const int some = map.free_sessions(static_cast<int>(c), need.kind);
      if (some >= sessions) free |= gpu_bit(static_cast<int>(c));
      places[c].sessions = some;
    }
  }
  if (out_of_turn)
    for (std::size_t i = 0; i < claims.size(); ++i)
      if (i != map.own_index()) claims[i].waiting = 0;
  return gpu_for_item(claims, map.own_index(), free, places, &left);
}

}  // namespace vfm::share
