// Copies on a disk: made once, the least recently used removed, and what killed processes leave.
// SPDX-License-Identifier: Apache-2.0
#include "io/file_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {

constexpr std::uint64_t kCopyBytes = 40960;

std::string copy_name(int number) {
  return hash_hex("copy " + std::to_string(number));
}

/// Bytes that tell their number.
std::string copy_text(int number) {
  std::string text;
  while (text.size() < kCopyBytes)
    text += copy_name(number) + std::to_string(text.size());
  text.resize(kCopyBytes);
  return text;
}

std::string contents_of(const File& file) {
  std::string text(file.size(), '\0');
  file.pread_exact(text.data(), text.size(), 0);
  return text;
}

File take_copy(const CopyFolder& cache, int number, std::atomic<int>* filled = nullptr) {
  return cache.copy(copy_name(number), kCopyBytes, [&](File& to) {
    if (filled) ++*filled;
    // In pieces, so that a kill may come between.
    const std::string text = copy_text(number);
    for (std::size_t at = 0; at < text.size(); at += 4096)
      to.write_all(text.data() + at, std::min<std::size_t>(4096, text.size() - at));
  });
}

bool has_copy(const CopyFolder& cache, int number) {
  return std::filesystem::exists(join_path(cache.folder(), copy_name(number)));
}

/// Bytes of all files in a folder, without the ledger.
std::uint64_t bytes_in(const std::string& folder) {
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().filename() != ".vfm-cache") sum += entry.file_size();
  return sum;
}

/// Uses copies at random until it is killed; ends with 1 if one has wrong bytes.
[[noreturn]] void use_copies(const std::string& folder, std::uint64_t most, unsigned seed) {
  std::mt19937 random(seed);
  int wrong = 0;
  try {
    const CopyFolder cache(folder, most);
    while (wrong == 0) {
      const int number = static_cast<int>(random() % 30);
      wrong += contents_of(take_copy(cache, number)) != copy_text(number) ? 1 : 0;
    }
  } catch (...) {
    wrong = 1;
  }
  ::_exit(wrong);
}

pid_t start_user(const std::string& folder, std::uint64_t most, unsigned seed) {
  const pid_t pid = ::fork();
  if (pid == 0) use_copies(folder, most, seed);
  return pid;
}

/// Processes that share a cache for twelve copies, of which one after another is killed.
void kill_users(std::size_t processes, int kills) {
  const TemporaryFolder folder;
  const std::uint64_t most = 12 * kCopyBytes;
  std::mt19937 random(7);
  unsigned seed = 0;
  std::vector<pid_t> users;
  for (std::size_t i = 0; i < processes; ++i)
    users.push_back(start_user(folder.path, most, ++seed));
  for (int kill = 0; kill < kills; ++kill) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 30));
    pid_t& victim = users[random() % users.size()];
    ::kill(victim, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(victim, &status, 0) == victim);
    REQUIRE(WIFSIGNALED(status));  // else it had found wrong bytes
    victim = start_user(folder.path, most, ++seed);
  }
  for (const pid_t user : users) {
    ::kill(user, SIGKILL);
    int status = 0;
    ::waitpid(user, &status, 0);
    CHECK(WIFSIGNALED(status));
  }
  // What the killed ones left is gone, and the copies are whole and not too many.
  const CopyFolder cache(folder.path, most);
  CHECK(bytes_in(folder.path) <= most);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path))
    CHECK_FALSE(entry.path().string().ends_with(".tmp"));
  for (int number = 0; number < 30; ++number)
    CHECK(contents_of(take_copy(cache, number)) == copy_text(number));
}

}  // namespace

TEST_CASE("a copy is made once, by one of many threads") {
  const TemporaryFolder folder;
  const CopyFolder cache(folder / "new/cache", 100 * kCopyBytes);
  std::atomic<int> filled{0}, right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back(
        [&] { right += contents_of(take_copy(cache, 1, &filled)) == copy_text(1) ? 1 : 0; });
  for (std::thread& thread : threads)
    thread.join();
  CHECK(filled == 1);
  CHECK(right == 6);
  File again = take_copy(cache, 1, &filled);
  CHECK(filled == 1);
  CHECK(hash_file(again) == hash_hex(copy_text(1)));  // from its begin
}

TEST_CASE("a copy that was being made when its maker failed is made again") {
  const TemporaryFolder folder;
  const CopyFolder cache(folder.path, 100 * kCopyBytes);
  const auto stop_early = [&](File& to) { to.write_all("abc", 3); };
  CHECK_THROWS_WITH(cache.copy(copy_name(2), kCopyBytes, stop_early),
                    Catch::Contains("got 3 bytes"));
  CHECK_THROWS_WITH(cache.copy(copy_name(2), kCopyBytes, [](File&) { fail("the store is gone"); }),
                    "the store is gone");
  CHECK(bytes_in(folder.path) == 0);
  CHECK(contents_of(take_copy(cache, 2)) == copy_text(2));
  // One that somebody cut is no copy.
  std::filesystem::resize_file(join_path(folder.path, copy_name(2)), 5);
  CHECK(contents_of(take_copy(cache, 2)) == copy_text(2));
}

TEST_CASE("the copies that were used least recently go, other files stay") {
  const TemporaryFolder folder;
  folder.write("notes.txt", std::string(10 * kCopyBytes, 'x'));
  const CopyFolder cache(folder.path, 20 * kCopyBytes);
  for (int number = 0; number < 20; ++number) {
    take_copy(cache, number);
    // Times of files may be coarse.
    const timespec then[2] = {{number + 1, 0}, {number + 1, 0}};
    ::utimensat(AT_FDCWD, join_path(folder.path, copy_name(number)).c_str(), then, 0);
  }
  const File held = take_copy(cache, 1);
  take_copy(cache, 0);  // used now
  take_copy(cache, 20);
  CHECK(has_copy(cache, 0));
  CHECK(has_copy(cache, 1));
  CHECK_FALSE(has_copy(cache, 2));
  CHECK_FALSE(has_copy(cache, 4));  // a sixteenth of the room is free
  CHECK(has_copy(cache, 5));
  CHECK(has_copy(cache, 20));
  CHECK(std::filesystem::exists(folder / "notes.txt"));
  // A smaller cache in the same folder; a copy that is open stays readable.
  const CopyFolder smaller(folder.path, 2 * kCopyBytes);
  CHECK(bytes_in(folder.path) <= 12 * kCopyBytes);
  CHECK(contents_of(held) == copy_text(1));
}

TEST_CASE("what a killed process left is removed, and what is being made stays") {
  const TemporaryFolder folder;
  folder.write("." + copy_name(5) + ".tmp", "half");
  folder.write(".another.tmp", "not ours");
  const CopyFolder cache(folder.path, 20 * kCopyBytes);
  CHECK_FALSE(std::filesystem::exists(folder / ("." + copy_name(5) + ".tmp")));
  CHECK(std::filesystem::exists(folder / ".another.tmp"));
  const File copy = cache.copy(copy_name(6), 3, [&](File& to) {
    const CopyFolder other(folder.path, 20 * kCopyBytes);
    CHECK(std::filesystem::exists(folder / ("." + copy_name(6) + ".tmp")));
    to.write_all("abc", 3);
  });
  CHECK(contents_of(copy) == "abc");
}

TEST_CASE("the name of a cache is a folder and a size") {
  CHECK_THROWS_WITH(set_cache("/scratch"), Catch::Contains("DIR:SIZE"));
  CHECK_THROWS_WITH(set_cache(":4GB"), Catch::Contains("DIR:SIZE"));
  CHECK_THROWS_AS(set_cache("/scratch:many"), Error);
  CHECK_THROWS_WITH(set_cache("/scratch:0"), Catch::Contains("no bytes"));
}

TEST_CASE("processes that share a cache are killed, and every copy has its bytes") {
  kill_users(3, 20);
}

TEST_CASE("eight processes that share a cache are killed again and again", "[nightly]") {
  kill_users(8, 1500);
}
