// Folders, files and locks, on a disk and in a bucket.
// SPDX-License-Identifier: Apache-2.0
#include "io/folder.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/run_end.h"
#include "io/atomic_file.h"
#include "io/error_log.h"
#include "io/file.h"
#include "io/folder_lock.h"
#include "io/growing_file.h"
#include "io/hash_ledger.h"
#include "io/object_server.h"
#include "io/places.h"
#include "io/process_name.h"
#include "io/remote/bucket_store.h"
#include "io/remote/remote_file.h"
#include "support/heard_log.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;
using Catch::Contains;

namespace {

std::vector<std::string> names_of(const std::vector<FolderEntry>& list) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : list)
    names.push_back(entry.folder ? entry.name + "/"
                                 : entry.name + " " + std::to_string(entry.bytes));
  return names;
}

using Names = std::vector<std::string>;

/// A bucket, and folders of this test for what grows and for temporary files.
struct Bucket {
  Bucket() {
    ::setenv("VFM_STATE", (state / "1").c_str(), 1);
    ::setenv("TMPDIR", state.path.c_str(), 1);
  }
  ~Bucket() {
    ::unsetenv("VFM_STATE");
    ::setenv("TMPDIR", before.c_str(), 1);
  }
  /// As if another machine went on.
  void other_machine() const { ::setenv("VFM_STATE", (state / "2").c_str(), 1); }
  std::string operator/(const std::string& name) const { return address + "/" + name; }
  /// Number of files below the folders of this machine.
  std::size_t files_here() const { return files_below(state.path).size(); }

  std::string before = std::filesystem::temp_directory_path();
  TemporaryFolder state;
  ObjectServer server;
  std::string address = ObjectServer::new_bucket();
};

void check_folder(const std::string& root) {
  const auto in = [&](const char* name) { return join_path(root, name); };
  CHECK_FALSE(is_folder(in("a")));
  CHECK(entries(in("a")).empty());
  CHECK(files_below(in("a")).empty());
  make_directories(in("a/b"));
  make_directories(in("a-b"));
  write_file(in("a/b/x.tar"), "12345");
  write_file(in("a/b-"), "1");
  write_file(in("a/.hidden"), "");
  write_file(in("a-b/y"), "12");
  CHECK(is_file(in("a/b/x.tar")));
  CHECK_FALSE(is_file(in("a/b")));
  CHECK_FALSE(is_file(in("a/b/x.ta")));
  CHECK(is_folder(in("a")));
  CHECK(is_folder(in("a/b/")));
  CHECK_FALSE(is_folder(in("a/b-")));
  CHECK(size_of(in("a/b/x.tar")) == 5);
  CHECK(size_of(in("a/.hidden")) == 0);
  CHECK_FALSE(size_of(in("a")));
  CHECK(names_of(entries(root)) == Names{"a/", "a-b/"});
  CHECK(names_of(entries(in("a"))) == Names{".hidden 0", "b/", "b- 1"});
  CHECK(names_of(files_below(root)) == Names{"a-b/y 2", "a/.hidden 0", "a/b- 1", "a/b/x.tar 5"});
  rename_path(in("a/b-"), in("a/c"));
  rename_path(in("a"), in("d"));
  rename_path(in("d"), in("a-b"));
  CHECK(names_of(files_below(root)) == Names{"a-b/.hidden 0", "a-b/b/x.tar 5", "a-b/c 1"});
  CHECK(read_file(in("a-b/c")) == "1");
  CHECK(remove_file(in("a-b/c")));
  CHECK_FALSE(remove_file(in("a-b/c")));
  remove_folder(in("a-b/b"));
  remove_folder(in("none"));
  CHECK(names_of(files_below(root)) == Names{"a-b/.hidden 0"});
}

}  // namespace

TEST_CASE("folders of a disk and of a bucket are listed, renamed and removed alike") {
  const TemporaryFolder folder;
  check_folder(folder.path);
  const Bucket bucket;
  check_folder(bucket / "deep/er");
}

TEST_CASE("links of a disk are followed, but not in circles") {
  const TemporaryFolder folder;
  folder.write("a/x", "123");
  std::filesystem::create_symlink("a", folder / "b");
  std::filesystem::create_symlink("..", folder / "a/up");
  std::filesystem::create_symlink("nowhere", folder / "a/gone");
  CHECK(is_file(folder / "b/x"));
  CHECK(names_of(entries(folder.path)) == Names{"a/", "b/"});
  CHECK(names_of(files_below(folder.path)) == Names{"a/gone 0", "a/x 3"});
  CHECK(canonical_path(folder / "b/x") == canonical_path(folder / "a/x"));
  CHECK(canonical_path("s3://b/x//") == "s3://b/x");
}

TEST_CASE("an address is a path") {
  CHECK(dir_name("s3://b/a.tar") == "s3://b");
  CHECK(dir_name("s3://b/x/a.tar") == "s3://b/x");
  CHECK(dir_name("s3://b") == "s3://b");
  CHECK(join_path("s3://b", "x") == "s3://b/x");
  CHECK(join_path("out", "s3://b/x") == "s3://b/x");
  CHECK(name_from("s3://b/out", "s3://b/raw/a.mp4") == "../raw/a.mp4");
  CHECK(name_from("s3://b", "s3://b/raw/a.mp4") == "raw/a.mp4");
  CHECK(name_from("s3://b/out", "s3://c/a.mp4") == "s3://c/a.mp4");
  CHECK(name_from("s3://b/out", "/raw/a.mp4") == "/raw/a.mp4");
  CHECK(name_from("/out", "s3://b/a.mp4") == "s3://b/a.mp4");
  CHECK(named_from("s3://b/out", "../raw/a.mp4") == "s3://b/raw/a.mp4");
  CHECK(named_from("s3://b/out", "https://h/a.mp4") == "https://h/a.mp4");
  CHECK(named_from("s3://b/out", "/raw/a.mp4") == "/raw/a.mp4");
}

TEST_CASE("an object is read as a file is") {
  Bucket bucket;
  const std::string path = bucket / "a.bin", text = "0123456789";
  write_file(path, text);
  CHECK(file_exists(path));
  CHECK_FALSE(file_exists(bucket / "b.bin"));
  CHECK(read_file(path) == text);
  CHECK(read_stream(path) == text);
  CHECK_THROWS_WITH(read_file(path, 9), Contains(path));
  CHECK(MappedFile(path).text() == text);
  const int reads = bucket.server.count("GET");
  CHECK(hash_file(path) == hash_hex(text));  // as its writer stored it
  CHECK(bucket.server.count("GET") == reads);
  File file = File::open_regular(path);
  CHECK(file);
  CHECK(file.size() == 10);
  char bytes[4];
  file.pread_exact(bytes, 4, 3);
  CHECK(std::string_view(bytes, 4) == "3456");
  file.seek(8);
  CHECK(file.read_some(bytes, 4) == 2);
  CHECK(std::string_view(bytes, 2) == "89");
  CHECK(file.read_some(bytes, 4) == 0);
  CHECK_THROWS_WITH(file.fd(), Contains("no descriptor"));
  CHECK_THROWS_WITH(file.write_all("x", 1), Contains("no descriptor"));
  CHECK_THROWS_WITH(File::open_read(bucket / "none"), Contains(bucket / "none"));
  CHECK_THROWS_AS(make_directories("https://127.0.0.1/x"), Error);
  CHECK_THROWS_AS(write_file("https://127.0.0.1/x", ""), Error);
  bucket.server.put(bucket.address.substr(4) + "/foreign", "abc");
  CHECK(hash_file(bucket / "foreign") == hash_hex("abc"));
}

TEST_CASE("an object is written whole or not at all, and again only if it differs") {
  Bucket bucket;
  const std::string path = bucket / "a.bin";
  {
    AtomicFile file(path);
    file.write("1");
    file.write("23");
    CHECK(file.sends());
    CHECK(file.bytes_written() == 3);
    CHECK_THROWS_WITH(file.fd(), Contains("no local file"));
  }
  CHECK_FALSE(file_exists(path));
  AtomicFile file(path);
  file.write("123");
  CHECK(file.differs());
  file.commit();
  CHECK(read_file(path) == "123");
  const int puts = bucket.server.count("PUT");
  update_file(path, "123");
  CHECK(bucket.server.count("PUT") == puts);
  update_file(path, "12");
  CHECK(read_file(path) == "12");
  bucket.server.put(bucket.address.substr(4) + "/foreign", "12");
  update_file(bucket / "foreign", "12");  // without a stored hash it counts as different
  CHECK(bucket.server.count("PUT") == puts + 2);
}

TEST_CASE("what a library fills goes by a local file, which does not stay") {
  Bucket bucket;
  for (int i = 0; i < 2; ++i) {
    AtomicFile file(bucket / "db");
    CHECK_THAT(file.temporary_path(), Catch::StartsWith(bucket.state.path));
    CHECK(::pwrite(file.fd(), "abc", 3, 0) == 3);
    CHECK(file.differs() == (i == 0));
    if (i == 0)
      file.commit();
    else
      file.commit_changes();
  }
  CHECK(read_file(bucket / "db") == "abc");
  CHECK(bucket.server.count("PUT") == 1);
  { CHECK(AtomicFile(bucket / "other").fd() >= 0); }
  CHECK_FALSE(file_exists(bucket / "other"));
  CHECK(bucket.files_here() == 0);
}

TEST_CASE("a growing file goes on where it is, or from the object if another machine wrote it") {
  Bucket bucket;
  const std::string path = bucket / "run/metrics.jsonl";
  const auto add = [](const GrowingFile& file, const char* text) {
    const int fd = ::open(file.local().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    File(fd, file.local()).write_all(text, 1);
  };
  {
    GrowingFile file(path);
    file.put();  // nothing there
    CHECK_FALSE(file_exists(path));
    add(file, "1");
    file.put();
    add(file, "2");
    CHECK(read_file(path) == "1");
  }
  const int puts = bucket.server.count("PUT");
  {
    GrowingFile file(path);  // after a kill
    CHECK(read_file(file.local()) == "12");
    file.put();
    file.put();
    CHECK(bucket.server.count("PUT") == puts + 1);
  }
  bucket.other_machine();
  {
    GrowingFile file(path);
    CHECK(read_file(file.local()) == "12");
    add(file, "3");
    file.put();
  }
  ::setenv("VFM_STATE", (bucket.state / "1").c_str(), 1);
  GrowingFile file(path);
  CHECK(read_file(file.local()) == "123");
  CHECK(remove_file(path));
  GrowingFile fresh(path);  // of a run that began again
  CHECK_FALSE(is_file(fresh.local()));
  const TemporaryFolder folder;
  GrowingFile near(folder / "x");
  CHECK(near.local() == folder / "x");
  write_file(near.local(), "1");
  near.put();
  near.remove();
  CHECK_FALSE(is_file(folder / "x"));
}

TEST_CASE("errors of two programs that end at the same time are all in the bucket") {
  Bucket bucket;
  const std::string path = bucket / "errors.jsonl";
  const auto end_together = [&](const char* a, const char* b) {
    ErrorLog one(path, "vfm-test"), other(path, "vfm-test");
    one.add({a, "broken"});
    other.add({b, "broken"});
    std::atomic<bool> first{true};
    // The other one writes between the look and the write of the first.
    bucket.server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
      const bool writes = request.method == "PUT" && request.path.ends_with("/errors.jsonl");
      if (writes && first.exchange(false)) other.finish();
      return std::nullopt;
    };
    one.finish();
    bucket.server.before = nullptr;
    const std::string text = read_file(path);
    CHECK_THAT(text, Contains(a) && Contains(b));
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  };
  end_together("a.mp4", "b.mp4");
  end_together("c.mp4", "d.mp4");  // in place of an earlier run's file
  // A store without conditions is written as far as it goes.
  Bucket weak;
  weak.server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    if (request.headers.contains("if-none-match")) return served_error(501, "NotImplemented");
    return std::nullopt;
  };
  ErrorLog errors(weak / "errors.jsonl", "vfm-test");
  errors.add({"a.mp4", "broken"});
  errors.finish();
  CHECK_THAT(read_file(weak / "errors.jsonl"), Contains("a.mp4"));
}

TEST_CASE("lines that two machines add to one growing file are all kept") {
  Bucket bucket;
  const std::string path = bucket / "x.answers.jsonl";
  const auto add = [](const GrowingFile& file, const std::string& line) {
    const int fd = ::open(file.local().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    File(fd, file.local()).write_all(line.data(), line.size());
  };
  GrowingFile here = GrowingFile::of_lines(path);
  bucket.other_machine();
  GrowingFile there = GrowingFile::of_lines(path);
  add(here, "1\n2\n");
  add(there, "3\n1\n4");
  here.put();
  there.put();
  CHECK(read_file(path) == "3\n1\n4\n2\n");
  add(here, "5\n");
  here.put();
  CHECK(read_file(path) == "1\n2\n5\n3\n4\n");
  CHECK(read_file(here.local()) == read_file(path));
  const int puts = bucket.server.count("PUT");
  here.put();
  CHECK(bucket.server.count("PUT") == puts);
}

TEST_CASE("one program has the lock of a bucket's folder, and the next one after it") {
  Bucket bucket;
  const LockTimes times{.beat = 0.05, .patience = 30};
  FolderLock first = lock_folder(bucket.address, times);
  CHECK_THROWS_WITH(lock_folder(bucket.address, times),
                    Contains("'" + bucket.address + "' is in use by another program"));
  first = FolderLock();
  CHECK_FALSE(file_exists(bucket / ".vfm-lock"));
  const FolderLock second = lock_folder(bucket.address, times);
  CHECK(file_exists(bucket / ".vfm-lock"));
  CHECK_FALSE(run_ends());
}

TEST_CASE("the lock of a killed process of this machine is taken over at once") {
  Bucket bucket;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  REQUIRE(child > 0);
  const ProcessName self = ProcessName::self();
  // Its parent, this process, has not asked how it ended, so its number is still taken.
  siginfo_t facts{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &facts, WEXITED | WNOWAIT) == 0);
  CHECK(ProcessName{self.host, child, self.machine}.is_gone());
  CHECK_FALSE(ProcessName{self.host, child, "another"}.is_gone());
  CHECK_FALSE(self.is_gone());
  BucketStore(bucket.address)
      .write(".vfm-lock", R"({"host":")" + self.host + R"(","pid":)" + std::to_string(child) +
                              R"(,"machine":")" + self.machine + R"(","number":7})");
  const auto begin = std::chrono::steady_clock::now();
  { const FolderLock lock = lock_folder(bucket.address); }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(ProcessName{self.host, child, self.machine}.is_gone());
}

TEST_CASE("a lock that nobody renews is taken over, and who lost it ends its run") {
  Bucket bucket;
  BucketStore store(bucket.address);
  store.write(".vfm-lock", R"({"host":"other","pid":1,"machine":"m","number":7})");
  const auto begin = std::chrono::steady_clock::now();
  const HeardLog told;
  {
    const FolderLock lock = lock_folder(bucket.address, {.beat = 0.05, .patience = 0.5});
    CHECK_THAT(HeardLog::text(),
               Contains("'" + bucket.address + "' is locked by process 1 of 'other'"));
    CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(500));
    store.write(".vfm-lock", "another program's");
    for (int i = 0; i < 200 && !run_ends(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(run_ends());
    CHECK_THAT(run_end_message(), Contains("the lock of '" + bucket.address + "' is lost"));
  }
  forget_run_end();
  CHECK(read_file(bucket / ".vfm-lock") == "another program's");
}

TEST_CASE("a store that allows no writes is an error, and one without conditions has no lock") {
  Bucket bucket;
  int status = 403;
  bucket.server.before = [&](const ServedRequest& request, int) -> std::optional<ServedAnswer> {
    const bool plain = !request.headers.contains("if-none-match") && status == 501;
    if (request.method != "PUT" || plain) return std::nullopt;
    return served_error(status, status == 403 ? "AccessDenied" : "Refused");
  };
  CHECK_THROWS_WITH(lock_folder(bucket / "x"), Contains("403 AccessDenied"));
  status = 503;
  ::setenv("VFM_NET_SECONDS", "1", 1);
  CHECK_THROWS_WITH(lock_folder(bucket / "x"), Contains("503 Refused"));
  status = 501;
  const FolderLock none = lock_folder(bucket / "x");
  CHECK(bucket.server.object_paths().empty());
}

TEST_CASE("errors and hashes of objects are kept in the bucket") {
  Bucket bucket;
  const std::string path = bucket / "errors.jsonl";
  {
    ErrorLog errors(path, "vfm-test");
    errors.add({"a.mp4", "broken"});
    errors.finish();
  }
  CHECK_THAT(read_file(path), Contains("broken"));
  {
    ErrorLog errors(path, "vfm-test");
    errors.finish();
  }
  CHECK_FALSE(file_exists(path));

  const std::string ledger_path = bucket / ".vfm-hashes";
  const std::string base = bucket.address.substr(4) + "/";
  const std::map<std::string, std::string> objects = {
      {"1", "one"}, {"2", "two"}, {"large", std::string(HashLedger::kLeastBytes, 'x')}};
  for (const auto& [name, contents] : objects)
    bucket.server.put(base + name, contents);
  const auto hash_all = [&](HashLedger& ledger) {
    for (const auto& [name, contents] : objects) {
      File file = File::open_regular(bucket / name);
      CHECK(ledger.hash(file) == hash_hex(contents));
    }
  };
  HashLedger first(ledger_path);
  hash_all(first);
  CHECK(first.files_read() == 3);
  first.finish();
  bucket.other_machine();
  HashLedger second(ledger_path);
  hash_all(second);
  CHECK(second.files_known() == 3);
  bucket.server.put(base + "1", "changed");
  File file = File::open_regular(bucket / "1");
  CHECK(second.hash(file) == hash_hex("changed"));
}
