// What the map of GPUs tells of the records that are in it, made here by hand, and what taking
// writes into them.
// SPDX-License-Identifier: Apache-2.0
#include "share/gpu_map.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::share;

namespace {

constexpr std::int64_t kS = kSessionBytes;
constexpr std::int64_t kGpuMemory = 20 * kS;

std::vector<SharedGpu> two_gpus(int sessions = 0) {
  return {{0, "a", kGpuMemory, sessions}, {1, "b", kGpuMemory, sessions}};
}
GpuNeed need_of(GpuKind kind, std::int64_t memory) {
  return {.stage = "own", .kind = kind, .memory = memory, .input = -1, .output = -1};
}

/// A map of this program alone, which has two GPUs and the first record; the others are made.
struct MadeMap {
  explicit MadeMap(GpuKind kind = GpuKind::compute) {
    map.join(two_gpus(4), need_of(kind, kS));
    map.file().head.gpu[0].sessions = map.file().head.gpu[1].sessions = {0, 4, 2};
  }
  GpuRecord& add(GpuKind kind, std::int64_t memory, int place = 0) {
    GpuRecord& record = map.file().records[++last];
    std::memcpy(record.stage, "made", 5);
    record.pid = static_cast<std::int64_t>(100 + last);
    record.kind = static_cast<std::int32_t>(kind);
    record.memory = memory;
    record.place = place;
    record.may = gpu_bit(0) | gpu_bit(1);
    record.used = 1;
    record.joined = record.beat = record.last_item = gpu_clock();
    return record;
  }
  /// One that has ended.
  GpuRecord& add_gone(GpuKind kind, std::int64_t memory) {
    GpuRecord& record = add(kind, memory);
    record.gone = 1;
    record.items = {3, 3};
    record.model = {GpuModel::loaded, GpuModel::loaded};
    record.beside = gpu_flag(GpuKind::decode) | gpu_flag(GpuKind::encode);
    record.waiting = 1;
    record.wanted = record.may;
    return record;
  }
  GpuMap map{""};
  std::size_t last = 0;
};

constexpr GpuSet kTwo = 3;

}  // namespace

TEST_CASE("a GPU is free where no item of a model is, whoever has it") {
  MadeMap made;
  CHECK((made.map.free() & kTwo) == kTwo);
  made.add_gone(GpuKind::compute, kS);
  made.add(GpuKind::decode, kS).items = {2, 1};
  CHECK((made.map.free() & kTwo) == kTwo);
  made.add(GpuKind::compute, kS).items = {0, 1};
  CHECK((made.map.free() & kTwo) == gpu_bit(0));
  made.map.own().items[0] = 1;
  CHECK((made.map.free() & kTwo) == 0);
}

TEST_CASE("memory of a gpu: for models, for sessions, and what programs have themselves") {
  MadeMap made;
  const GpuMap& map = made.map;
  made.add_gone(GpuKind::compute, kS);
  made.add_gone(GpuKind::decode, kS);
  CHECK(map.model_memory(0) == kGpuMemory);
  CHECK(map.session_memory(0) == 0);
  CHECK(map.loaded_memory(0) == 0);
  // Sessions of a kind count where a program may take some; a model has none but beside it.
  GpuRecord& model = made.add(GpuKind::compute, 5 * kS);
  CHECK(map.model_memory(0) == kGpuMemory);
  GpuRecord& decodes = made.add(GpuKind::decode, 3 * kS);
  decodes.may = gpu_bit(0);
  CHECK(map.model_memory(0) == kGpuMemory - 3 * kS - 4 * kS);
  CHECK(map.model_memory(1) == kGpuMemory);
  made.add(GpuKind::encode, kS).may = gpu_bit(0);
  made.add(GpuKind::encode, kS).may = gpu_bit(0);
  CHECK(map.model_memory(0) == kGpuMemory - 5 * kS - 4 * kS - 2 * kS);
  CHECK(map.gpu_places().size() == 2);
  CHECK(map.gpu_places()[0].free == kGpuMemory - 11 * kS);
  // Sessions in use.
  CHECK(map.session_memory(0) == 5 * kS);
  CHECK(map.session_memory(1) == 0);
  decodes.items = {3, 0};
  model.items = {1, 1};
  CHECK(map.session_memory(0) == 5 * kS + 3 * kS);
  // A model has its memory from when it is being loaded until it is unloaded.
  for (const GpuModel state : {GpuModel::loading, GpuModel::loaded, GpuModel::unloading}) {
    model.model = {state, GpuModel::none};
    CHECK(map.loaded_memory(0) == 5 * kS);
    CHECK(map.loaded_memory(1) == 0);
  }
  made.map.own().model[0] = GpuModel::loaded;
  CHECK(map.loaded_memory(0) == 6 * kS);
  CHECK(map.names_on(0).size() == 2);
  CHECK(map.names_on(0)[1] == "made (process 103)");
  CHECK(map.names_on(1).empty());
}

TEST_CASE("sessions that are free, and those that will be, beside models and in what memory is") {
  MadeMap made;
  const GpuMap& map = made.map;
  made.add_gone(GpuKind::compute, kS);
  made.add_gone(GpuKind::decode, kS);
  GpuRecord& decodes = made.add(GpuKind::decode, kS);
  CHECK(map.free_sessions(0, GpuKind::decode) == 4);
  CHECK(map.most_sessions(0, GpuKind::decode) == 4);
  decodes.items = {1, 0};
  CHECK(map.free_sessions(0, GpuKind::decode) == 3);
  CHECK(map.free_sessions(0, GpuKind::encode) == 2);
  CHECK(map.most_sessions(0, GpuKind::decode) == 4);
  // A model that has one beside it: while an item is there; or as long as it is there.
  GpuRecord& model = made.add(GpuKind::compute, 2 * kS);
  made.add(GpuKind::compute, 0).model = {GpuModel::loaded, GpuModel::none};  // has none beside
  model.beside = gpu_flag(GpuKind::decode);
  model.model = {GpuModel::loading, GpuModel::none};
  CHECK(map.free_sessions(0, GpuKind::decode) == 3);
  CHECK(map.most_sessions(0, GpuKind::decode) == 3);
  CHECK(map.most_sessions(0, GpuKind::encode) == 2);
  CHECK(map.most_sessions(1, GpuKind::decode) == 4);
  model.items = {1, 0};
  CHECK(map.free_sessions(0, GpuKind::decode) == 2);
  CHECK(map.free_sessions(0, GpuKind::encode) == 2);
  // 20 pieces of memory: 1 of the program, 1 of its session, 17 of the model.
  model.memory = 17 * kS;
  CHECK(map.free_sessions(0, GpuKind::decode) == 1);
  CHECK(map.most_sessions(0, GpuKind::decode) == 2);
  model.memory = 18 * kS + 1;
  CHECK(map.free_sessions(0, GpuKind::decode) == 0);
  CHECK(map.most_sessions(0, GpuKind::decode) == 0);
  model.memory = 30 * kS;
  CHECK(map.free_sessions(0, GpuKind::decode) == 0);
  CHECK(map.most_sessions(0, GpuKind::decode) == 0);
}

TEST_CASE("what the rule for items knows of each record") {
  MadeMap made;
  GpuMap& map = made.map;
  made.add_gone(GpuKind::compute, kS);
  GpuRecord& model = made.add(GpuKind::compute, kS, 5);
  model.waiting = 3;
  model.wanted = gpu_bit(0) | gpu_bit(1);
  model.model = {GpuModel::loaded, GpuModel::loading};
  GpuRecord& decodes = made.add(GpuKind::decode, kS, 7);
  decodes.waiting = 2;
  decodes.left_out = gpu_bit(1);
  auto claims = map.claims(GpuKind::compute);
  REQUIRE(claims.size() == kGpuRecords);
  CHECK(claims[1].waiting == 0);
  CHECK((claims[2].place == 5 && claims[2].waiting == 3 && claims[2].ready == gpu_bit(0)));
  CHECK((claims[3].waiting == 0 && claims[3].ready == 0));
  model.wanted = gpu_bit(1);
  CHECK(map.claims(GpuKind::compute)[2].ready == 0);
  model.wanted = model.may;
  model.left_out = gpu_bit(0);
  CHECK(map.claims(GpuKind::compute)[2].ready == 0);
  model.left_out = 0;
  claims = map.claims(GpuKind::decode);
  CHECK((claims[3].place == 7 && claims[3].waiting == 2 && claims[3].ready == gpu_bit(0)));
  CHECK(claims[2].waiting == 0);
  // One that did not look for a second is not counted on; this program itself is there.
  model.beat = map.own().beat = gpu_clock() - 1.5;
  CHECK(map.claims(GpuKind::compute)[2].waiting == 0);
  CHECK_FALSE(map.answers(model));
  CHECK(map.answers(map.own()));
  model.beat = gpu_clock();
  CHECK(map.answers(model));
  model.gone = 1;
  CHECK_FALSE(map.answers(model));
}

TEST_CASE("sums with items that are under way") {
  MadeMap made;
  GpuRecord& record = made.add(GpuKind::compute, kS);
  record.counts.busy = {1, 2};
  record.counts.short_of = 10;
  record.items = {0, 1};
  record.since = {0, 90};
  record.waits_since = 95;
  GpuCounts now = made.map.counts_now(record, 100);
  CHECK((now.busy[0] == 1 && now.busy[1] == 12 && now.short_of == 10));
  // Of sessions: so many, since the sum of their begins.
  record.items = {3, 0};
  record.since = {3 * 96, 0};
  record.waiting = 2;
  now = made.map.counts_now(record, 100);
  CHECK((now.busy[0] == 1 + 3 * 4 && now.busy[1] == 2 && now.short_of == 15));
}

TEST_CASE("programs that name the same GPU have one entry, with the least that any says") {
  const TemporaryFolder folder;
  GpuMap first(folder / "share"), second(folder / "share"), third(folder / "share");
  first.join(std::vector<SharedGpu>{{0, "a", 10, 4}, {1, "b", 10, 4}}, need_of(GpuKind::decode, 1));
  second.join(std::vector<SharedGpu>{{0, "b", 8, 3}, {1, "c", 12, 5}}, need_of(GpuKind::decode, 1));
  CHECK(second.places() == std::vector<int>{1, 2});
  CHECK(second.own().may == (gpu_bit(1) | gpu_bit(2)));
  REQUIRE(first.gpus() == 3);
  const GpuFile::Head& head = first.file().head;
  CHECK((head.gpu[0].memory == 10 && head.gpu[1].memory == 8 && head.gpu[2].memory == 12));
  CHECK(head.gpu[1].sessions == std::array<std::int32_t, kGpuKinds>{0, 3, 0});
  CHECK(head.gpu[2].sessions == std::array<std::int32_t, kGpuKinds>{0, 5, 0});
  // Another kind has its own number, and a larger one changes nothing.
  third.join(std::vector<SharedGpu>{{0, "b", 9, 6}}, need_of(GpuKind::encode, 1));
  CHECK(head.gpu[1].sessions == std::array<std::int32_t, kGpuKinds>{0, 3, 6});
  CHECK(head.gpu[1].memory == 8);
  CHECK((first.own_index() == 0 && second.own_index() == 1 && third.own_index() == 2));
  third.leave();
  second.leave();
  first.leave();
}

TEST_CASE("a record that was never used is taken first, then the one that is out of use longest") {
  const TemporaryFolder folder;
  GpuMap stays(folder / "share");
  stays.join(two_gpus(), need_of(GpuKind::compute, 1));
  for (std::size_t i = 1; i < kGpuRecords; ++i) {
    GpuMap passes(folder / "share");
    passes.join(two_gpus(), need_of(GpuKind::compute, 1));
    CHECK(passes.own_index() == i);
    passes.leave();
  }
  {
    const GpuMap::Locked lock(stays);
    stays.file().records[7].left = 1;
    stays.file().records[9].left = 2;
  }
  GpuMap next(folder / "share");
  next.join(two_gpus(), need_of(GpuKind::compute, 1));
  CHECK(next.own_index() == 7);
  CHECK(next.own().waiting == 0);
  next.leave();
  stays.leave();
}

TEST_CASE("who is called for a gpu: the latest stage that can use it, and all who want sessions") {
  MadeMap made;
  made.add_gone(GpuKind::compute, kS).place = 9;
  GpuRecord& gone_decoder = made.add_gone(GpuKind::decode, kS);
  std::vector<GpuRecord*> models;
  for (const int place : {2, 1, 3}) {
    GpuRecord& record = made.add(GpuKind::compute, kS, place);
    record.waiting = 1;
    record.wanted = record.may;
    record.model = {GpuModel::loaded, GpuModel::loaded};
    models.push_back(&record);
  }
  models[2]->waiting = 0;
  GpuRecord& waits = made.add(GpuKind::decode, kS);
  waits.waiting = 1;
  GpuRecord& idle = made.add(GpuKind::encode, kS);
  made.map.call_for(0);
  CHECK((models[0]->call_items == 1 && models[1]->call_items == 0 && models[2]->call_items == 0));
  CHECK((waits.call_items == 1 && idle.call_items == 0 && gone_decoder.call_items == 0));
  models[0]->wanted = gpu_bit(1);
  made.map.call_for(0);
  CHECK((models[0]->call_items == 1 && models[1]->call_items == 1));
  // Who leaves calls for every GPU.
  made.map.leave();
  CHECK((models[0]->call_items == 2 && models[1]->call_items == 2));
  CHECK(waits.call_items == 4);
}

TEST_CASE("plans are made four times a second; sooner where a stage has no GPU for its items") {
  MadeMap made;
  GpuFile::Head& head = made.map.file().head;
  GpuRecord& own = made.map.own();
  const auto plans = [&](double looked_ago) {
    const double before = head.looked = gpu_clock() - looked_ago;
    made.map.plan();
    return head.looked != before;
  };
  own.wanted = gpu_bit(0);
  own.waiting = 1;
  head.changed = gpu_clock();
  CHECK(plans(0.3));
  CHECK_FALSE(plans(0.01));
  CHECK_FALSE(plans(0.1));
  own.wanted = 0;
  own.waiting = 0;
  CHECK_FALSE(plans(0.1));
  // Another kind, or one that does not answer, or has ended, starves nobody.
  made.add_gone(GpuKind::compute, kS).wanted = 0;
  made.add(GpuKind::decode, kS).waiting = 1;
  GpuRecord& asleep = made.add(GpuKind::compute, kS);
  asleep.waiting = 1;
  asleep.beat = gpu_clock() - 2;
  CHECK_FALSE(plans(0.1));
  own.waiting = 1;
  CHECK_FALSE(plans(0.01));
  CHECK(own.wanted == 0);
  const std::uint32_t called = own.call_keeper;
  CHECK(plans(0.1));
  CHECK(own.wanted != 0);
  CHECK((own.wanted & ~kTwo) == 0);
  CHECK(own.call_keeper == called + 1);
  CHECK((asleep.wanted == 0 && asleep.call_keeper == 0));
  // Averages are of the time that has passed, or of that since the record's program joined.
  own.averages = {};
  own.joined = gpu_clock() - 100;
  CHECK(plans(0.5));
  CHECK(own.averages.seconds[2] > 0.4);
  CHECK(own.averages.seconds[2] < 5);
  own.averages = {};
  own.joined = gpu_clock() - 0.001;
  CHECK(plans(0.5));
  CHECK(own.averages.seconds[2] < 0.4);
  // Nothing is moved for a second after a load.
  own.wanted = 0;
  own.waiting = 0;
  own.finished = 1;
  CHECK(plans(0.5));
  CHECK(own.wanted == 0);
  own.waiting = 1;
  CHECK(plans(0.5));
  CHECK(own.wanted == 0);  // it said that no more comes
}

TEST_CASE("a GPU whose stage has nothing to do goes to one that waits, if its model may go") {
  // One GPU has memory for one model; `other` has it, and had its last item ten seconds ago.
  const auto moved = [](const std::function<void(GpuRecord & other)>& change) {
    MadeMap made;
    GpuFile::Head& head = made.map.file().head;
    head.looked = head.changed = gpu_clock() - 10;
    GpuRecord& own = made.map.own();
    own.may = gpu_bit(0);
    own.memory = kGpuMemory;
    own.waiting = 1;
    own.joined = gpu_clock() - 20;
    GpuRecord& other = made.add(GpuKind::compute, kGpuMemory, 1);
    other.may = other.wanted = gpu_bit(0);
    other.model = {GpuModel::loaded, GpuModel::none};
    other.last_item = other.joined = gpu_clock() - 10;
    other.load_seconds = 0.1;
    change(other);
    const GpuSet wanted = other.wanted;
    made.map.plan();
    if ((wanted & ~other.wanted) != 0) {
      CHECK(other.unwanted[0] > gpu_clock() - 1);
      CHECK(other.unwanted[1] == 0);
      CHECK(other.call_keeper == 1);
    }
    return own.wanted == gpu_bit(0);
  };
  CHECK(moved([](GpuRecord&) {}));
  // It works, or had an item just now; its model is still being loaded.
  CHECK_FALSE(moved([](GpuRecord& other) { other.items[0] = 1; }));
  CHECK_FALSE(moved([](GpuRecord& other) { other.last_item = gpu_clock(); }));
  CHECK_FALSE(moved([](GpuRecord& other) { other.model[0] = GpuModel::loading; }));
  // It does not answer: what it has stays as long as it does.
  CHECK_FALSE(moved([](GpuRecord& other) { other.beat = gpu_clock() - 2; }));
  // It was told to go: counted on, but not for ever.
  CHECK(moved([](GpuRecord& other) { other.wanted = 0, other.unwanted[0] = gpu_clock() - 1; }));
  CHECK_FALSE(
      moved([](GpuRecord& other) { other.wanted = 0, other.unwanted[0] = gpu_clock() - 6; }));
}

namespace {

/// A board of one program beside a view of its record.
struct SeenBoard {
  SeenBoard(GpuKind kind, const std::vector<SharedGpu>& gpus)
      : board(folder / "share", gpus, need_of(kind, kS), {}), seen(folder / "share") {}
  /// A copy of what one look sees.
  template <class Get>
  auto see(Get get) {
    const GpuMap::Locked lock(seen);
    return get(seen.file().records[0]);
  }
  std::vector<int> items() {
    return see([](const GpuRecord& r) { return std::vector<int>{r.items[0], r.items[1]}; });
  }
  void await(const std::function<bool(const GpuRecord&)>& what) {
    for (int i = 0; i < 60'000 && !see(what); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(see(what));
  }
  TemporaryFolder folder;
  GpuBoard board;
  GpuMap seen;
};

}  // namespace

TEST_CASE("sessions are taken of the GPU that has most of them free, and counted there") {
  SeenBoard it(GpuKind::decode, {{0, "a", kGpuMemory, 2}, {1, "b", kGpuMemory, 3}});
  const auto& takes = it.seen.file().head.takes[static_cast<std::size_t>(GpuKind::decode)];
  const double before = gpu_clock();
  const auto two = it.board.take_sessions(2, false);
  REQUIRE(two);
  CHECK((two->gpu->name == "b" && two->sessions == 2));
  CHECK(it.items() == std::vector<int>{0, 2});
  const double since = it.see([](const GpuRecord& r) { return r.since[1]; });
  CHECK((since >= 2 * before && since <= 2 * gpu_clock()));
  CHECK(it.board.take_sessions(2, false)->gpu->name == "a");
  CHECK(takes == 2);
  // None has two more; one has none.
  CHECK_FALSE(it.board.take_sessions(2, false));
  const auto last = it.board.take_sessions(1, false);
  REQUIRE(last);
  CHECK(it.items() == std::vector<int>{2, 3});
  CHECK_FALSE(it.board.take_sessions(1, false));
  CHECK(takes == 3);
  CHECK(it.see([](const GpuRecord& r) { return r.waiting; }) == 0);
  // More than a GPU will ever have is not waited for; what is left out counts no more.
  CHECK(it.board.most_sessions() == 3);
  CHECK_FALSE(it.board.take_sessions(4, true));
  it.see([](GpuRecord& r) { return r.left_out = gpu_bit(1); });
  CHECK(it.board.most_sessions() == 2);
  CHECK_FALSE(it.board.take_sessions(3, true));
  it.see([](GpuRecord& r) { return r.left_out = gpu_bit(0); });
  CHECK(it.board.most_sessions() == 3);
  it.see([](GpuRecord& r) { return r.left_out = kTwo; });
  CHECK(it.board.most_sessions() == 0);
  try {
    it.board.take_sessions(1, false);
    FAIL("taken");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::device);
  }
  it.see([](GpuRecord& r) { return r.left_out = 0; });
  it.board.give(*last);
  CHECK(it.items() == std::vector<int>{2, 2});
}

TEST_CASE("time without a GPU counts while any item waits, and a new one takes back the end") {
  SeenBoard it(GpuKind::compute, {{0, "a", kGpuMemory, 0}});
  it.board.finished();
  CHECK(it.see([](const GpuRecord& r) { return r.finished; }) == 1);
  const auto lease = it.board.take();
  CHECK(it.see([](const GpuRecord& r) { return r.finished; }) == 0);
  const double so_far = it.see([](const GpuRecord& r) { return r.counts.short_of; });
  std::vector<std::thread> threads;
  const auto wait_for_one = [&] {
    threads.emplace_back([&] {
      const auto one = it.board.take();
      it.await([&](const GpuRecord& r) { return r.waiting < 2; });
      it.board.give(*one);
    });
  };
  wait_for_one();
  it.await([](const GpuRecord& r) { return r.waiting == 1; });
  const double since = it.see([](const GpuRecord& r) { return r.waits_since; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  wait_for_one();
  it.await([](const GpuRecord& r) { return r.waiting == 2; });
  CHECK(it.see([](const GpuRecord& r) { return r.waits_since; }) == since);
  CHECK(it.see([](const GpuRecord& r) { return r.counts.short_of; }) == so_far);
  const double at_least = gpu_clock() - since;
  it.board.give(*lease);
  for (std::thread& thread : threads)
    thread.join();
  const double waited = it.see([](const GpuRecord& r) { return r.counts.short_of; }) - so_far;
  CHECK((waited >= at_least && waited <= gpu_clock() - since));
}
