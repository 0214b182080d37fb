// Leases: which one is the newest, when its holder counts as dead, who gets it, and who loses it.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "io/store.h"
#include "parts/part_lease.h"
#include "support/part_leases.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::parts;

namespace {

using Names = std::vector<std::string>;

const std::string kLeased = "embed/00000";
const LeaseTimes kNoBeat{1000, 3000};      // of a lease that does not beat while a test runs
constexpr double kNone = -1, kLong = 1e9;  // patience

/// A store that shows old answers before the true ones, and one that cannot write.
struct OddStore : io::FileStore {
  explicit OddStore(const TemporaryFolder& folder) : FileStore(folder.path) {}
  mutable std::deque<Names> lists;        ///< of list()
  mutable std::deque<std::string> reads;  ///< of read()
  std::atomic<int> faults{0};             ///< How many of the next calls of create() fail.
  std::atomic<int> failed{0};             ///< How many did.

  std::vector<std::string> list(const std::string& folder) const override {
    if (lists.empty()) return FileStore::list(folder);
    Names names = lists.front();
    lists.pop_front();
    return names;
  }
  std::optional<Object> read(const std::string& name) const override {
    if (reads.empty()) return FileStore::read(name);
    Object object{reads.front(), "old"};
    reads.pop_front();
    return object;
  }
  bool create(const std::string& name, std::string_view contents) override {
    if (faults > 0) {
      --faults, ++failed;
      fail("the disk is away");
    }
    return FileStore::create(name, contents);
  }
};

std::unique_ptr<PartLease> claim_leased(io::Store& store, const LeaseTimes& times = kNoBeat) {
  LeaseWatch watch;
  return PartLease::claim(store, kLeased, times, watch, io::ProcessName::self(), "gpu");
}

/// Waits until `seen` returns true, at most ten seconds.
template <class Seen>
bool soon(Seen seen) {
  for (int tries = 0; tries < 5000; ++tries) {
    if (seen()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

LeaseFacts far_lease(int generation, std::uint64_t beat, double patience) {
  return {generation, beat, kFarProcess, "", "2026-01-01T00:00:00Z", {20, patience}};
}

}  // namespace

TEST_CASE("the newest lease is that of the highest numbers, and other names are no leases") {
  const TemporaryFolder folder;
  OddStore store(folder);
  CHECK_FALSE(find_lease(store, kLeased));
  const auto make = [&](const std::string& name) {
    store.create(kLeased + "/" + name, lease_text(kFarProcess, 7.5));
  };
  for (const char* name : {"lease-1-99", "lease-2-9", "lease-2-10", "lease-1-0"})
    make(name);
  const std::optional<LeaseFacts> found = find_lease(store, kLeased);
  REQUIRE(found);
  CHECK(found->generation == 2);
  CHECK(found->beat == 10);
  CHECK(found->process.name() == kFarProcess.name());
  CHECK(found->begun == "2026-01-01T00:00:00Z");
  CHECK(found->times.beat == 2.5);
  CHECK(found->times.patience == 7.5);
  make("lease-10-0");
  for (const char* name : {"lease-99", "lease-99-", "lease-99x1", "lease-x-0", "lease-99-1.bak",
                           "lease-", "lease", "release-99-1", "manifest.jsonl"})
    make(name);
  CHECK(find_lease(store, kLeased)->generation == 10);
  store.write(kLeased + "/lease-11-0", "{");
  CHECK_THROWS_WITH(find_lease(store, kLeased),
                    Catch::Contains("the lease 'embed/00000/lease-11-0'"));
}

TEST_CASE("a lease that beats while it is read is found") {
  const TemporaryFolder folder;
  OddStore store(folder);
  store.create(kLeased + "/lease-1-7", lease_text(kFarProcess, 1));
  store.lists.assign(2, {"lease-1-3"});
  CHECK(find_lease(store, kLeased)->beat == 7);
  CHECK(store.lists.empty());
}

TEST_CASE("a lease that beats without end is not looked for without end", "[nightly]") {
  const TemporaryFolder folder;
  OddStore store(folder);
  store.lists.assign(100, {"lease-1-3"});
  CHECK_THROWS_WITH(find_lease(store, kLeased), Catch::Contains("change too often"));
}

TEST_CASE("the times of a lease are those of the tests, or outlast the caches of file systems") {
  CHECK(LeaseTimes::of({}).beat == 20);
  CHECK(LeaseTimes::of({}).patience == 65);
  CHECK(LeaseTimes::of(0.25).beat == 0.25);
  CHECK(LeaseTimes::of(0.25).patience == 0.75);
}

TEST_CASE("a holder lives if its lease changes, and is dead if that does not for its patience") {
  using Sign = LeaseWatch::Sign;
  LeaseWatch watch;
  CHECK(watch.see(kLeased, far_lease(1, 0, kNone)) == Sign::unknown);
  CHECK(watch.see(kLeased, far_lease(1, 0, kLong)) == Sign::unknown);
  CHECK(watch.see(kLeased, far_lease(1, 1, kNone)) == Sign::alive);
  CHECK(watch.see(kLeased, far_lease(1, 1, kLong)) == Sign::alive);
  CHECK(watch.see(kLeased, far_lease(1, 1, kNone)) == Sign::dead);
  CHECK(watch.see(kLeased, far_lease(1, 1, kNone)) == Sign::dead);
  CHECK(watch.see(kLeased, far_lease(1, 2, kNone)) == Sign::alive);
  // The first sight of another process says nothing, whether or not its lease has another name.
  CHECK(watch.see(kLeased, far_lease(2, 0, kNone)) == Sign::unknown);
  LeaseFacts other = far_lease(2, 0, kNone);
  other.begun = "2026-01-01T00:00:01Z";
  CHECK(watch.see(kLeased, other) == Sign::unknown);
  CHECK(watch.see(kLeased, other) == Sign::dead);
  other.process.pid = 13;
  CHECK(watch.see(kLeased, other) == Sign::unknown);
  other.beat = 1;
  CHECK(watch.see(kLeased, other) == Sign::alive);
  // Each folder has its own.
  CHECK(watch.see("embed/00001", other) == Sign::unknown);
  watch.forget(kLeased);
  CHECK(watch.see(kLeased, other) == Sign::unknown);
  // Who can see the process does not wait.
  other.process = gone_process();
  CHECK(watch.see(kLeased, other) == Sign::dead);
}

TEST_CASE("one process has a lease until it ends it, and leaves what a later generation has") {
  const TemporaryFolder folder;
  OddStore store(folder);
  std::unique_ptr<PartLease> lease = claim_leased(store);
  REQUIRE(lease);
  CHECK(lease->generation() == 1);
  CHECK(store.list(kLeased) == Names{"lease-1-0"});
  const std::optional<LeaseFacts> found = find_lease(store, kLeased);
  CHECK(found->process.name() == io::ProcessName::self().name());
  CHECK(found->node_kind == "gpu");
  CHECK(found->begun == lease->begun());
  CHECK(found->times.patience == kNoBeat.patience);
  CHECK_FALSE(claim_leased(store));
  CHECK(store.list(kLeased) == Names{"lease-1-0"});
  lease.reset();
  CHECK(store.list(kLeased).empty());

  // Of a dead process, nothing stays, and a beat that it left late goes with the lease.
  for (const char* name : {"/lease-4-0", "/lease-4-2"})
    store.create(kLeased + name, lease_text(gone_process(), kLong));
  lease = claim_leased(store);
  REQUIRE(lease);
  CHECK(store.list(kLeased) == Names{"lease-5-0"});
  store.create(kLeased + "/lease-4-3", lease_text(gone_process(), kLong));
  lease.reset();
  CHECK(store.list(kLeased).empty());

  // A later generation is of another process, although this one has not seen it yet.
  lease = claim_leased(store);
  store.create(kLeased + "/lease-2-0", lease_text(kFarProcess, kLong));
  lease.reset();
  CHECK(store.list(kLeased) == Names{"lease-2-0"});
}

TEST_CASE("after a lease that a watch took for dead, the next holder is not taken for dead") {
  const TemporaryFolder folder;
  OddStore store(folder);
  LeaseWatch watch;
  const auto claim = [&] {
    return PartLease::claim(store, kLeased, kNoBeat, watch, io::ProcessName::self());
  };
  store.create(kLeased + "/lease-1-0", lease_text(kFarProcess, kNone));
  CHECK_FALSE(claim());
  std::unique_ptr<PartLease> lease = claim();
  REQUIRE(lease);
  CHECK(lease->generation() == 2);
  lease.reset();
  store.create(kLeased + "/lease-1-0", lease_text(kFarProcess, kNone));
  CHECK_FALSE(claim());
  CHECK(claim());
}

TEST_CASE("a process that saw no lease, or one that ended, yields to who has the part now") {
  const TemporaryFolder folder;
  OddStore store(folder);
  const io::ProcessName gone = gone_process();
  // None was seen.
  store.create(kLeased + "/lease-2-0", lease_text(kFarProcess, kLong));
  store.lists.assign(1, Names{});
  CHECK_FALSE(claim_leased(store));
  CHECK(store.list(kLeased) == Names{"lease-2-0"});
  store.remove(kLeased + "/lease-2-0");
  // The one that was seen has ended, and another process, or the same one later, has its name now.
  const std::string before = lease_text(gone, kLong);
  for (const std::string& now :
       {lease_text(kFarProcess, kLong), lease_text(gone, kLong, "2026-01-01T00:00:01Z")}) {
    store.create(kLeased + "/lease-1-0", now);
    store.lists = {{"lease-1-0"}};
    store.reads = {before};
    CHECK_FALSE(claim_leased(store));
    CHECK(store.list(kLeased) == Names{"lease-1-0"});
    store.remove(kLeased + "/lease-1-0");
  }
  // The one that was seen has ended, and nobody has the part.
  store.lists = {{"lease-1-0"}};
  store.reads = {before};
  CHECK(claim_leased(store)->generation() == 2);
  // It ends just when it is looked at again.
  store.lists = {{"lease-1-0"}, {"lease-1-0", "lease-2-0"}};
  store.reads = {before};
  CHECK(claim_leased(store)->generation() == 2);
  CHECK(store.list(kLeased).empty());
}

TEST_CASE("a holder whose lease somebody removed has lost it") {
  const TemporaryFolder folder;
  OddStore store(folder);
  const std::unique_ptr<PartLease> lease = claim_leased(store, {0.01, kLong});
  REQUIRE(lease);
  CHECK(soon([&] {
    for (const std::string& name : store.list(kLeased))
      store.remove(kLeased + "/" + name);
    return lease->lost();
  }));
}

TEST_CASE("a holder that cannot write a beat has lost its lease after its patience, not before") {
  const TemporaryFolder folder;
  OddStore store(folder);
  std::unique_ptr<PartLease> lease = claim_leased(store, {0.005, kLong});
  store.faults = 3;
  CHECK(soon([&] { return store.failed == 3; }));
  const std::uint64_t before = find_lease(store, kLeased)->beat;
  CHECK(soon([&] { return find_lease(store, kLeased)->beat > before + 1; }));
  CHECK_FALSE(lease->lost());
  lease.reset();
  CHECK(store.list(kLeased).empty());
  lease = claim_leased(store, {0.005, 0.02});
  store.faults = 1'000'000;
  CHECK(soon([&] { return lease->lost(); }));
  lease.reset();
  // Patience counts from the last beat, not from the claim.
  store.faults = 0, store.failed = 0;
  lease = claim_leased(store, {0.005, 0.4});
  std::this_thread::sleep_for(std::chrono::milliseconds(450));
  store.faults = 1;
  CHECK(soon([&] { return store.failed == 1; }));
  const std::uint64_t last = find_lease(store, kLeased)->beat;
  CHECK(soon([&] { return find_lease(store, kLeased)->beat > last || lease->lost(); }));
  CHECK_FALSE(lease->lost());
}
