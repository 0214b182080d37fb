// Ranges of objects through a cache: each block fetched once, given before it is written, and
// fetched again where a copy is damaged or was not finished.
// SPDX-License-Identifier: Apache-2.0
#include "io/block_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {

/// An object whose bytes are known, which counts what is asked of it.
class MadeObject final : public RemoteFile {
 public:
  explicit MadeObject(std::uint64_t size, int number = 0)
      : address_("s3://made/" + std::to_string(number)), size_(size), number_(number) {}

  const std::string& address() const override { return address_; }
  std::uint64_t size() const override { return size_; }
  const std::string& version() const override { return version_; }
  const std::string& stored_hash() const override { return none_; }
  bool has_ranges() const override { return true; }
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const override {
    for (std::size_t i = 0; i < size; ++i)
      static_cast<char*>(out)[i] = byte(offset + i);
    fetched += size;
  }
  void pread_all(std::span<const Range> ranges,
                 const std::function<void(std::size_t)>& /*done*/) const override {
    for (const Range& range : ranges)
      pread_exact(range.out.data(), range.out.size(), range.offset);
    ++calls;
  }
  char byte(std::uint64_t place) const {
    return static_cast<char>(place * 7 + (place >> 12) + static_cast<std::uint64_t>(number_));
  }

  mutable std::atomic<std::uint64_t> fetched{0};
  mutable std::atomic<int> calls{0};

 private:
  std::string address_, version_ = "1", none_;
  std::uint64_t size_;
  int number_;
};

/// Whether these ranges have the object's bytes when they are read by one call.
bool reads_right(const std::shared_ptr<MadeObject>& object,
                 const std::vector<std::pair<std::uint64_t, std::size_t>>& places) {
  const std::shared_ptr<CachedFile> file = CachedFile::of(object);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<RemoteFile::Range> ranges;
  for (const auto& [offset, size] : places)
    bytes.emplace_back(size);
  for (std::size_t i = 0; i < places.size(); ++i)
    ranges.push_back({places[i].first, bytes[i]});
  file->pread_all(ranges);
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::size_t k = 0; k < bytes[i].size(); ++k)
      if (static_cast<char>(bytes[i][k]) != object->byte(places[i].first + k)) return false;
  return true;
}

/// Begins with the cache anew, when all that was read is written.
void use_cache(const std::string& folder, const std::string& size = "100MB") {
  set_cache(folder + ":" + size);
}

std::vector<std::string> block_files(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".blocks") paths.push_back(entry.path().string());
  return paths;
}

std::uint64_t disk_bytes(const std::string& folder) {
  std::uint64_t sum = 0;
  for (const std::string& path : block_files(folder)) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) == 0) sum += static_cast<std::uint64_t>(facts.st_blocks) * 512;
  }
  return sum;
}

/// Reads ranges at random until it is killed; ends with 1 if one has wrong bytes.
[[noreturn]] void read_ranges(const std::string& folder, unsigned seed) {
  std::mt19937 random(seed);
  bool right = true;
  try {
    use_cache(folder, "1MB");
    while (right) {
      const auto object =
          std::make_shared<MadeObject>(10 * kCacheBlock + 77, static_cast<int>(random() % 6));
      const std::uint64_t offset = random() % object->size();
      right = reads_right(object, {{offset, random() % (object->size() - offset)}});
    }
  } catch (...) {
    right = false;
  }
  ::_exit(right ? 0 : 1);
}

pid_t start_reader(const std::string& folder, unsigned seed) {
  const pid_t pid = ::fork();
  if (pid == 0) read_ranges(folder, seed);
  return pid;
}

/// Processes that read the same objects by one cache, of which one after another is killed.
void kill_readers(std::size_t processes, int kills) {
  const TemporaryFolder folder;
  use_cache(folder.path);  // A child has no thread of an earlier cache.
  std::mt19937 random(11);
  unsigned seed = 0;
  std::vector<pid_t> readers;
  for (std::size_t i = 0; i < processes; ++i)
    readers.push_back(start_reader(folder.path, ++seed));
  const auto end = [](pid_t reader) {
    ::kill(reader, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(reader, &status, 0) == reader);
    CHECK(WIFSIGNALED(status));  // else it had found wrong bytes
  };
  for (int kill = 0; kill < kills; ++kill) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 30));
    pid_t& victim = readers[random() % readers.size()];
    end(victim);
    victim = start_reader(folder.path, ++seed);
  }
  for (const pid_t reader : readers)
    end(reader);
  const CopyFolder counted(folder.path, 1'000'000);
  CHECK(disk_bytes(folder.path) <= 1'000'000);
}

}  // namespace

TEST_CASE("a range of an object is fetched once, in whole blocks, whatever its borders are") {
  const TemporaryFolder folder;
  use_cache(folder.path);
  const auto object = std::make_shared<MadeObject>(5 * kCacheBlock + 100);
  const std::uint64_t block = kCacheBlock;
  // Within a block, over borders, twice the same, the end, and nothing.
  CHECK(reads_right(object, {{10, 20}, {block - 1, 2}, {10, 20}, {5 * block + 1, 99}, {7, 0}}));
  CHECK(object->fetched == 2 * block + 100);
  use_cache(folder.path);
  CHECK(reads_right(object, {{0, 2 * block}, {5 * block, 100}}));
  CHECK(object->fetched == 2 * block + 100);
  CHECK(reads_right(object, {{0, 5 * block + 100}}));
  CHECK(object->fetched == 5 * block + 100);
  CHECK(object->calls == 2);
  CHECK_THROWS_WITH(reads_right(object, {{5 * block, 101}}), Catch::Contains("is truncated"));
  // Another object, and files of many stretches.
  const auto large = std::make_shared<MadeObject>(std::uint64_t{4000} * block, 1);
  CHECK(reads_right(large, {{2047 * block + 5, block}, {3999 * block, block}}));
  use_cache(folder.path);
  CHECK(reads_right(large, {{2047 * block + 5, block}, {3999 * block, block}}));
  CHECK(large->fetched == 3 * block);
  CHECK(block_files(folder.path).size() == 3);
  // Of a range that goes on behind what was read, only the rest is fetched.
  const auto begun = std::make_shared<MadeObject>(4 * block, 2);
  CHECK(reads_right(begun, {{0, block}}));
  use_cache(folder.path);
  CHECK(reads_right(begun, {{0, 2 * block}}));
  CHECK(begun->fetched == 2 * block);
}

TEST_CASE("a block whose copy is damaged is fetched again") {
  const TemporaryFolder folder;
  use_cache(folder.path);
  const auto object = std::make_shared<MadeObject>(4 * kCacheBlock);
  CHECK(reads_right(object, {{0, 4 * kCacheBlock}}));
  use_cache(folder.path);
  const std::string path = block_files(folder.path).at(0);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(2 * kCacheBlock + 5));
    file.put('x');
  }
  CHECK(reads_right(object, {{0, 4 * kCacheBlock}}));
  CHECK(object->fetched == 5 * kCacheBlock);
  use_cache(folder.path);
  CHECK(reads_right(object, {{0, 4 * kCacheBlock}}));
  CHECK(object->fetched == 5 * kCacheBlock);
  std::filesystem::resize_file(path, 3 * kCacheBlock);
  CHECK(reads_right(object, {{0, 4 * kCacheBlock}}));
  CHECK(object->fetched == 9 * kCacheBlock);
}

TEST_CASE("who reads a range does not wait until it is in the cache") {
  const TemporaryFolder folder;
  use_cache(folder.path);
  const auto object = std::make_shared<MadeObject>(2 * kCacheBlock);
  CHECK(reads_right(object, {{0, 10}}));
  use_cache(folder.path);
  CHECK(reads_right(object, {{0, 10}}));  // The cache is open.
  // Nobody can count what he writes.
  const int ledger = ::open((folder / ".vfm-cache").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(ledger, LOCK_EX) == 0);
  CHECK(reads_right(object, {{kCacheBlock, 10}}));
  ::close(ledger);
  use_cache(folder.path);
  CHECK(reads_right(object, {{kCacheBlock, 10}}));
  CHECK(object->fetched == 2 * kCacheBlock);
}

TEST_CASE("a cache that cannot be written fails a later read") {
  const TemporaryFolder folder;
  use_cache(folder / "cache");
  const auto object = std::make_shared<MadeObject>(1000 * kCacheBlock);
  CHECK(reads_right(object, {{0, 10}}));
  std::filesystem::remove_all(folder / "cache");
  const auto read_on = [&] {
    for (std::uint64_t block = 1; block < 1000; ++block) {
      if (!reads_right(object, {{block * kCacheBlock, 10}})) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  CHECK_THROWS_WITH(read_on(), Catch::Contains("cannot create"));
  use_cache(folder.path);
}

TEST_CASE("blocks of objects that were read long ago go") {
  const TemporaryFolder folder;
  use_cache(folder.path, "1MB");
  for (int number = 0; number < 8; ++number)
    CHECK(reads_right(std::make_shared<MadeObject>(10 * kCacheBlock, number),
                      {{0, 10 * kCacheBlock}}));
  use_cache(folder.path, "1MB");
  CHECK(disk_bytes(folder.path) <= 1'000'000);
  const auto newest = std::make_shared<MadeObject>(10 * kCacheBlock, 7);
  CHECK(reads_right(newest, {{0, 10 * kCacheBlock}}));
  CHECK(newest->fetched == 0);
}

TEST_CASE("processes that read ranges by one cache are killed, and every range has its bytes") {
  kill_readers(3, 15);
}

TEST_CASE("eight processes that read ranges by one cache are killed again and again", "[nightly]") {
  kill_readers(8, 1000);
}
