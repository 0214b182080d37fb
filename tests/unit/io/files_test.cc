// Whole files or none, paths, and reads that say what is missing.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/hash.h"
#include "base/run_end.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/folder_lock.h"
#include "io/mapping_list.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::io;

namespace {
struct Folder : TemporaryFolder {
  std::size_t count() const {
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path))
      ++n;
    return n;
  }
};
}  // namespace

TEST_CASE("an atomic file appears at commit and only then") {
  const Folder folder;
  const std::string path = folder.path + "/a.txt";
  {
    AtomicFile file(path);
    file.write("half");
    CHECK_FALSE(file_exists(path));
  }
  CHECK(folder.count() == 0);
  {
    AtomicFile file(path);
    file.write("who");
    file.write("le");
    file.commit();
  }
  CHECK(read_file(path) == "whole");
  CHECK(folder.count() == 1);
}

TEST_CASE("no more of a file is read than was asked for") {
  const Folder folder;
  const std::string path = folder.path + "/a.txt";
  write_file(path, "whole");
  CHECK(read_file(path, 5) == "whole");
  std::filesystem::resize_file(path, 1ull << 40);  // takes no place on the disk
  try {
    read_file(path, 5);
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(error.cause() == Cause::limit);
    CHECK_THAT(error.what(), Catch::Contains("has 1.0 TiB, and at most 5 B are read"));
  }
}

TEST_CASE("no more of a file is read than was asked for, whatever size it is said to have") {
  const std::string path = "/proc/self/status";  // by its size it is empty
  const std::string whole = read_file(path);
  REQUIRE(whole.size() > 5);
  CHECK(read_file(path, whole.size() + 100).size() > 5);
  try {
    read_file(path, 5);
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(error.cause() == Cause::limit);
    CHECK(std::string(error.what()) ==
          "'/proc/self/status' has more than 5 B, the most that is read");
  }
}

TEST_CASE("a link that leads back to itself is told from one under the temporary name") {
  const Folder folder;
  const std::string loop = folder.path + "/loop";
  std::filesystem::create_symlink("loop", loop);
  CHECK_THROWS_WITH(AtomicFile(loop + "/a.txt"),
                    "cannot create '" + loop + "/a.txt': a link in '" + loop +
                        "' leads back to itself; remove it, or choose another folder");
  std::filesystem::create_symlink("other", folder.path + "/.a.txt.tmp");
  CHECK_THROWS_WITH(AtomicFile(folder.path + "/a.txt"),
                    Catch::EndsWith(".a.txt.tmp' is a link or a pipe, which vfm does not make; "
                                    "remove it"));
}

TEST_CASE("an abandoned write leaves the old contents") {
  const Folder folder;
  const std::string path = folder.path + "/a.txt";
  write_file(path, "old");
  { AtomicFile(path).write("new"); }
  CHECK(read_file(path) == "old");
}

TEST_CASE("what a killed writer left is overwritten, a living writer is respected") {
  const Folder folder;
  const std::string path = folder.path + "/a.txt";
  write_file(folder.path + "/.a.txt.tmp", "a longer rest of a killed run");
  {
    AtomicFile first(path);
    CHECK_THROWS_WITH(AtomicFile(path), Catch::Contains("is being written by another program"));
    first.write("x");
    first.commit();
  }
  CHECK(read_file(path) == "x");
  CHECK(folder.count() == 1);
}

TEST_CASE("who waits for a living writer sees what that one wrote, or that it gave up") {
  const Folder folder;
  const std::string path = folder.path + "/a.txt";
  const auto add = [&] {
    AtomicFile file = AtomicFile::await(path);
    file.write((file_exists(path) ? read_file(path) : "") + "y");
    file.commit();
  };
  AtomicFile first(path);
  std::thread other(add);
  first.write("x");
  first.commit();
  other.join();
  CHECK(read_file(path) == "xy");
  AtomicFile second(path);
  std::thread another(add);
  second.abandon();
  another.join();
  CHECK(read_file(path) == "xyy");
  CHECK(folder.count() == 1);
}

TEST_CASE("a folder is waited for that its last program still has for a moment, and no longer") {
  const Folder folder;
  const std::string path = folder.path + "/run";
  FolderLock first = lock_folder(path);
  std::thread dying([&first] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    first = FolderLock();
  });
  const FolderLock second = lock_folder(path);
  dying.join();
  CHECK_THROWS_WITH(lock_folder(path),
                    "'" + path +
                        "' is in use by another program that writes it; wait for it, or "
                        "choose another folder");
}

TEST_CASE("update_file leaves equal contents alone") {
  const Folder folder;
  const std::string path = folder.path + "/a.txt";
  write_file(path, "same");
  const auto old = std::filesystem::last_write_time(path) - std::chrono::hours(1);
  std::filesystem::last_write_time(path, old);
  update_file(path, "same");
  CHECK(std::filesystem::last_write_time(path) == old);
  update_file(path, "other");
  CHECK(read_file(path) == "other");
}

TEST_CASE("errors name the path and the reason") {
  const Folder folder;
  const std::string missing = folder.path + "/missing/a";
  CHECK_THROWS_WITH(read_file(missing), "cannot open '" + missing + "': No such file or directory");
  CHECK_THROWS_WITH(read_file(folder.path), Catch::EndsWith("Is a directory"));
  CHECK_THROWS_WITH(AtomicFile(missing), Catch::Contains("cannot create '" + missing + "'"));
  write_file(folder.path + "/short", "abc");
  char bytes[8];
  CHECK_THROWS_WITH(File::open_read(folder.path + "/short").pread_exact(bytes, 8, 0),
                    Catch::Contains("is truncated"));
}

TEST_CASE("a full disk is an error at the write or the commit") {
  // /dev/full is no regular file, but write_all must report what the kernel says.
  const int fd = ::open("/dev/full", O_WRONLY);
  REQUIRE(fd >= 0);
  File file(fd, "x");
  // It is the fault of no item: everything else ends too.
  CHECK_THROWS_AS(file.write_all("abc", 3), Stopped);
  CHECK_THAT(run_end_message(),
             Catch::Contains("cannot write 'x': No space left on device; make room"));
  CHECK_THROWS_AS(check_stop(), Stopped);
  forget_run_end();
  check_stop();
}

TEST_CASE("a map holds the bytes; an empty file maps to nothing") {
  const Folder folder;
  write_file(folder.path + "/a", "contents");
  write_file(folder.path + "/empty", "");
  CHECK(MappedFile(folder.path + "/a").text() == "contents");
  CHECK(MappedFile(folder.path + "/empty").text().empty());
  CHECK(hash_file(folder.path + "/a") == hash_hex("contents"));
}

TEST_CASE("a map that its file was cut under is told when it has been read") {
  const Folder folder;
  folder.write("w", std::string(10000, 'x'));
  const MappedFile map(folder / "w");
  map.release(map.bytes());
  REQUIRE(::truncate((folder / "w").c_str(), 9000) == 0);  // in the page of the last byte
  CHECK_THROWS_WITH(map.release(map.bytes().subspan(8192, 1)),
                    "'" + (folder / "w") + "' was cut to 9000 bytes while it was read");
  std::filesystem::remove(folder / "w");  // it is still there for who has it open
  CHECK_NOTHROW(map.release(map.bytes().first(8192)));
}

TEST_CASE("of an address it is known which mapped file it is in, however many there are") {
  const Folder folder;
  std::vector<MappedFile> maps;
  for (int i = 0; i < 100; ++i) {
    const std::string path = folder / ("w" + std::to_string(i));
    folder.write("w" + std::to_string(i), std::string(5000, 'x'));
    maps.emplace_back(path);
  }
  for (const MappedFile& map : maps)
    for (const std::size_t at : {0U, 4999U}) {
      const FileMapping found = mapping_at(map.bytes().data() + at);
      REQUIRE(found.path);
      CHECK(found.path == map.path());
      CHECK(found.bytes == 5000);
    }
  const std::byte* const gone = maps.front().bytes().data();
  maps.erase(maps.begin());
  CHECK(!mapping_at(gone).path);
  CHECK(!mapping_at(&folder).path);
  // The end of a name that is too long says more than its beginning.
  const std::string name = std::string(600, 'd') + "/model.safetensors";
  note_mapping(&folder, sizeof folder, name);
  CHECK(std::string(mapping_at(&folder).path) == name.substr(name.size() - 511));
  forget_mapping(&folder);
  CHECK(!mapping_at(&folder).path);
}

TEST_CASE("what Git LFS left in a file's place is called by that name") {
  const Folder folder;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 5\n";
  folder.write("p", pointer);
  const std::string message =
      "'" + (folder / "p") + "' is a Git LFS pointer, not the file itself: git lfs pull";
  CHECK_THROWS_WITH(read_file(folder / "p"), message);
  CHECK_THROWS_WITH(MappedFile(folder / "p"), message);
  CHECK_THROWS_WITH(File::open_read(folder / "p"), message);
  // A file about such pointers is none.
  folder.write("p", pointer + std::string(1024, ' '));
  CHECK(read_file(folder / "p").size() > 1024);
  folder.write("p", "the " + pointer);
  CHECK(read_file(folder / "p") == "the " + pointer);
}

TEST_CASE("paths come apart") {
  CHECK(base_name("a/b.tar") == "b.tar");
  CHECK(base_name("a/b/") == "b");
  CHECK(dir_name("a/b.tar") == "a");
  CHECK(dir_name("b.tar") == ".");
  CHECK(dir_name("/b") == "/");
  CHECK(stem("a/b.caption.tar") == "b");
  CHECK(stem(".hidden.tar") == ".hidden");
  CHECK(extension("a.b/C.MP4") == "mp4");
  CHECK(extension("a.b/c").empty());
  CHECK(extension(".hidden").empty());
  CHECK(join_path("a", "b") == "a/b");
  CHECK(join_path(".", "b") == "b");
  CHECK(join_path("a/", "/b") == "/b");
  CHECK(is_url("https://x/y.mp4"));
  CHECK_FALSE(is_url("/a/b://c"));
}

TEST_CASE("an address of another scheme is no file, however it comes here, and makes no folder") {
  for (const char* address : {"gs://b/x", "ftp://h/x", "x-y+1://z"}) {
    CHECK_THROWS_WITH(make_directories(address), Catch::Contains("is an address"));
    CHECK_THROWS_WITH(write_file(address, "x"), Catch::Contains("is an address"));
    CHECK_THROWS_WITH(File::open_read(address), Catch::Contains("is an address"));
    CHECK_THROWS_WITH(File::open_regular(address), Catch::Contains("is an address"));
  }
  CHECK_THROWS_WITH(write_file("s3:/b/x", "x"), Catch::Contains("s3://b/x"));
  CHECK_THROWS_WITH(make_directories("https://h/x"), Catch::Contains("nothing can be written"));
  for (const char* none : {"s3:", "gs:", "https:"})
    CHECK_FALSE(std::filesystem::exists(none));
  for (const char* path : {"./s3:/b/x", "a b:/x", "C:/x", "/s3:/x", ":/x", "a:b/x"})
    CHECK_THROWS_WITH(read_file(path), Catch::Contains("No such file"));
  CHECK_THROWS_WITH(read_file("./s3://b/x"), Catch::Contains("No such file"));
}
