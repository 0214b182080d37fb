// The store in a folder: whole objects, one winner, and what killed writers leave.
// SPDX-License-Identifier: Apache-2.0
#include "io/store.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "io/process_name.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

TEST_CASE("an object of a store is written, read in ranges, listed and removed") {
  const TemporaryFolder folder;
  FileStore store(folder / "a/b");
  CHECK_FALSE(store.facts("x/y"));
  CHECK_FALSE(store.read("x/y"));
  CHECK(store.list("x").empty());
  CHECK_FALSE(store.remove("x/y"));
  CHECK_THROWS_WITH(store.read_range("x/y", 0, 1), Catch::Contains("x/y"));
  store.write("x/y", "0123456789");
  CHECK(store.read("x/y")->contents == "0123456789");
  CHECK(store.facts("x/y")->bytes == 10);
  CHECK(store.facts("x/y")->version == store.read("x/y")->version);
  CHECK(store.read_range("x/y", 2, 3) == "234");
  CHECK(store.read_range("x/y", 8, 30) == "89");
  CHECK(store.read_range("x/y", 11, 3) == "");
  store.write("x/.hidden", "");
  store.write("x/b/c", "");
  store.write("x/a", "");
  CHECK(store.list("x") == std::vector<std::string>{"a", "b/", "y"});
  CHECK(store.list("") == std::vector<std::string>{"x/"});
  CHECK(store.remove("x/y"));
  CHECK_FALSE(store.facts("x/y"));
}

TEST_CASE("below an object there is nothing, and nothing can be written") {
  const TemporaryFolder folder;
  FileStore store(folder.path);
  store.write("x", "1");
  CHECK_FALSE(store.facts("x/y"));
  CHECK_FALSE(store.read("x/y"));
  CHECK_FALSE(store.remove("x/y"));
  CHECK(store.list("x").empty());
  store.sweep("x");
  CHECK_THROWS_WITH(store.write("x/y", "2"), Catch::Contains("cannot create '" + folder / "x/y'"));
  CHECK_THROWS_WITH(store.create("x/y", "2"), Catch::Contains("cannot create '" + folder / "x/y'"));
  CHECK_FALSE(store.replace("x/y", "2", store.facts("x")->version));
  CHECK(store.list("") == std::vector<std::string>{"x"});
  CHECK(store.path("") == folder.path);
  CHECK(store.path("x") == folder / "x");
  // A folder is no object.
  store.write("z/y", "2");
  CHECK_THROWS_AS(store.write("z", "3"), Error);
  CHECK_FALSE(store.create("z", "3"));
  CHECK(store.list("") == std::vector<std::string>{"x", "z/"});
  // A name that is there only when it is to be given.
  std::filesystem::create_symlink("nowhere", folder / "w");
  CHECK_FALSE(store.create("w", "4"));
  std::filesystem::remove(folder / "w");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 2);
}

TEST_CASE("what an earlier process of the same number left is no obstacle") {
  const TemporaryFolder folder;
  FileStore store(folder.path);
  // The numbers that the next temporary files of this process may have.
  for (int number = 0; number < 2000; ++number)
    folder.write(fmt::format(".x.{}.{}.tmp", ProcessName::self().name(), number), "left");
  CHECK(store.create("x", "1"));
  store.write("x", "2");
  CHECK(store.read("x")->contents == "2");
}

TEST_CASE("objects are written although another process sweeps their temporary files away") {
  const TemporaryFolder folder;
  FileStore store(folder.path);
  std::atomic<int> sweeps{0};  // How many temporary files go yet. Below 0, nobody sweeps.
  std::thread sweeper([&] {
    while (sweeps >= 0)
      for (const auto& entry : std::filesystem::directory_iterator(folder.path))
        if (sweeps > 0 && entry.path().extension() == ".tmp")
          sweeps -= ::unlink(entry.path().c_str()) == 0;
  });
  for (int i = 0; i < 20; ++i) {
    const std::string text = std::to_string(i), name = "created-" + text;
    sweeps = 2;
    CHECK_NOTHROW(store.write("written", text));
    CHECK(store.read("written")->contents == text);
    sweeps = 2;
    CHECK(store.create(name, text));
    CHECK(store.read(name)->contents == text);
  }
  sweeps = -1;
  sweeper.join();
  CHECK(store.list("").size() == 21);
}

TEST_CASE("an object is created once, and replaced only while it is as it was") {
  const TemporaryFolder folder;
  FileStore store(folder.path);
  CHECK(store.create("x", "1"));
  CHECK_FALSE(store.create("x", "2"));
  const std::string version = store.facts("x")->version;
  CHECK(store.replace("x", "3", version));
  CHECK_FALSE(store.replace("x", "4", version));
  CHECK(store.read("x")->contents == "3");
  CHECK_FALSE(store.replace("y", "4", version));
  store.write("x", "3");  // the same bytes, but another object
  CHECK_FALSE(store.replace("x", "4", version));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("of many writers one creates an object, and each change of a number is kept") {
  const TemporaryFolder folder;
  constexpr int kThreads = 4, kRounds = 25;
  std::atomic<int> created{0};
  FileStore(folder.path).write("number", "0");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      FileStore store(folder.path);  // as in another process
      for (int round = 0; round < kRounds; ++round) {
        created += store.create("once-" + std::to_string(round), "");
        for (bool done = false; !done;) {
          const Store::Object now = *store.read("number");
          done = store.replace("number", std::to_string(std::stoi(now.contents) + 1), now.version);
        }
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(created == kRounds);
  CHECK(FileStore(folder.path).read("number")->contents == std::to_string(kThreads * kRounds));
}

TEST_CASE("what killed writers leave is swept, and a name of one's own is not") {
  const TemporaryFolder folder;
  FileStore store(folder.path);
  const std::string own = ".x." + ProcessName::self().name() + ".7.tmp";
  for (const std::string& name : {std::string(".x.other-1.0.tmp"), std::string(".x.next"), own})
    folder.write(name, "");
  folder.write("y.tmp", "");
  store.sweep("");
  CHECK_FALSE(std::filesystem::exists(folder / ".x.other-1.0.tmp"));
  CHECK_FALSE(std::filesystem::exists(folder / ".x.next"));
  CHECK(std::filesystem::exists(folder / own));
  CHECK(std::filesystem::exists(folder / "y.tmp"));
  store.sweep("nowhere");
}

TEST_CASE("a change that a killed process began is taken away", "[nightly]") {
  const TemporaryFolder folder;
  FileStore store(folder.path);
  store.write("x", "1");
  folder.write(".x.next", "unfinished");
  CHECK(store.replace("x", "2", store.facts("x")->version));
  CHECK(store.read("x")->contents == "2");
  CHECK_FALSE(std::filesystem::exists(folder / ".x.next"));
}

TEST_CASE("a process is gone only if one can see that it is") {
  const ProcessName self = ProcessName::self();
  CHECK_FALSE(self.is_gone());
  CHECK_THAT(self.name(), Catch::Contains("-" + std::to_string(self.pid)));
  ProcessName other = self;
  other.pid = 0x3ffffff;  // above the numbers of processes
  CHECK(other.is_gone() == !self.machine.empty());
  other.machine = "elsewhere";
  CHECK_FALSE(other.is_gone());
  other.host = "a b/c:1";
  CHECK(other.name() == "a_b_c_1-67108863-elsewher");
  other.machine = "";
  CHECK(other.name() == "a_b_c_1-67108863");
}
