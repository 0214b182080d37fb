// What files' contents hash to, from run to run: believed where the file is as it was, and only
// then.
// SPDX-License-Identifier: Apache-2.0
#include "io/hash_ledger.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/hash.h"
#include "base/log.h"
#include "io/atomic_file.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> warnings;

struct Warnings {
  Warnings() {
    warnings.clear();
    set_log_sink([](LogLevel, std::string_view text) { warnings.emplace_back(text); },
                 LogLevel::warning);
  }
  ~Warnings() { set_log_sink(nullptr, LogLevel::warning); }
};

constexpr int kFiles = 300;  // enough for a ledger

/// Of all cases: files that are old enough to be noted, kFiles small ones, and some for a case to
/// change.
struct OldFiles {
  OldFiles() {
    for (int i = 0; i < kFiles + 10; ++i)
      write_file(path(i), "contents " + std::to_string(i));
    write_file(large(), "");
    fs::resize_file(large(), HashLedger::kLeastBytes);
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  }
  std::string path(int i) const { return join_path(folder.path, "file" + std::to_string(i)); }
  std::string large() const { return join_path(folder.path, "large"); }
  const TemporaryFolder folder;
};

const OldFiles& old_files() {
  static const OldFiles files;
  return files;
}

std::string hash_by(HashLedger& ledger, const std::string& path) {
  File file = File::open_regular(path);
  return ledger.hash(file);
}

void hash_all(HashLedger& ledger) {
  for (int i = 0; i < kFiles; ++i)
    CHECK(hash_by(ledger, old_files().path(i)) == hash_hex("contents " + std::to_string(i)));
}

/// Notes all.
void make_ledger(const std::string& path) {
  HashLedger ledger(path);
  hash_all(ledger);
}

/// Other contents of the same size and time of change.
void change_in_secret(const std::string& path) {
  struct stat before {};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  {
    std::fstream file(path, std::ios::in | std::ios::out);
    file << "CONTENTS";
  }
  const struct timespec times[2] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("files that did not change are not read again, and those that did are") {
  const Warnings watch;
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path, "ledger");
  {
    HashLedger ledger(path);
    hash_all(ledger);
    CHECK(ledger.files_read() == kFiles);
    CHECK_FALSE(fs::exists(path));
  }
  CHECK(fs::exists(path));
  {
    HashLedger ledger(path);
    hash_all(ledger);
    CHECK(ledger.files_read() == 0);
    CHECK(ledger.files_known() == kFiles);
  }
  const OldFiles& files = old_files();
  const std::string one = files.path(kFiles), two = files.path(kFiles + 1);
  {
    HashLedger ledger(path);
    hash_by(ledger, one);
    hash_by(ledger, two);
  }
  // The same size and time, in the same file: its ctime tells. In another file: its inode.
  change_in_secret(one);
  fs::copy_file(two, two + "b");
  change_in_secret(two + "b");
  fs::last_write_time(two + "b", fs::last_write_time(two));
  fs::rename(two + "b", two);
  HashLedger ledger(path);
  CHECK(hash_by(ledger, one) == hash_hex("CONTENTS 300"));
  CHECK(hash_by(ledger, two) == hash_hex("CONTENTS 301"));
  CHECK(hash_by(ledger, files.path(9)) == hash_hex("contents 9"));
  CHECK(ledger.files_read() == 2);
  const fs::path here = fs::current_path();
  fs::current_path(files.folder.path);
  CHECK(hash_by(ledger, "file10") == hash_hex("contents 10"));
  CHECK(ledger.files_read() == 2);
  fs::current_path(here);
  CHECK(warnings.empty());

  // What was changed just now is read until its times have settled.
  HashLedger again(path);
  hash_by(again, one);
  CHECK(again.files_read() == 1);
}

TEST_CASE("a ledger is made where there is something to remember") {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path, "ledger");
  const std::string small = old_files().path(0), large = old_files().large();
  {
    HashLedger ledger(path);
    hash_by(ledger, small);
  }
  CHECK_FALSE(fs::exists(path));
  {
    HashLedger ledger(path);
    hash_by(ledger, large);
  }
  CHECK(fs::exists(path));
  HashLedger ledger(path);
  CHECK(hash_by(ledger, large) == hash_file(large));
  CHECK(ledger.files_known() == 1);
}

TEST_CASE("a damaged ledger is told of once, made anew and not believed") {
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path, "ledger");
  make_ledger(path);
  const std::string whole = read_file(path);
  const std::string some_hash = hash_hex("contents 123");
  const auto damaged_at = [&](std::string_view what) {
    const Warnings watch;
    make_ledger(path);
    INFO(what);
    CHECK(warnings.size() == 1);
    if (!warnings.empty()) CHECK(warnings[0].find("is damaged") != std::string::npos);
    HashLedger ledger(path);
    hash_all(ledger);
    CHECK(warnings.size() == 1);
  };
  write_file(path, "no database at all" + std::string(2000, 'x'));
  damaged_at("text");
  write_file(path, whole.substr(0, whole.size() / 2));
  damaged_at("cut off");
  std::string other = whole;
  const std::size_t at = other.find(some_hash);
  REQUIRE(at != std::string::npos);
  other[at] = other[at] == '0' ? '1' : '0';
  write_file(path, other);
  damaged_at("a digit of a hash");
  other = whole;
  std::fill(other.begin() + 4096, other.begin() + 8192, '\0');
  write_file(path, other);
  damaged_at("a page of zeros");
}

TEST_CASE("what is no file of this user's is left alone") {
  const Warnings watch;
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path, "ledger");
  const std::string other = join_path(folder.path, "other");
  write_file(other, "somebody's");
  fs::create_symlink(other, path);
  make_ledger(path);
  CHECK(read_file(other) == "somebody's");
  CHECK(fs::is_symlink(path));
  CHECK(warnings.size() == 1);
}

TEST_CASE("several programs may use one ledger") {
  const Warnings watch;
  const TemporaryFolder folder;
  const std::string path = join_path(folder.path, "ledger");
  old_files();
  std::vector<std::thread> programs;
  for (int i = 0; i < 4; ++i)
    programs.emplace_back([&, i] {
      HashLedger ledger(path);
      for (int k = 0; k < kFiles; ++k) {
        File file = File::open_regular(old_files().path((k + 70 * i) % kFiles));
        ledger.hash(file);
      }
    });
  for (std::thread& program : programs)
    program.join();
  CHECK(warnings.empty());
  HashLedger ledger(path);
  hash_all(ledger);
  CHECK(ledger.files_read() == 0);
}
