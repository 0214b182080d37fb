// SPDX-License-Identifier: Apache-2.0
#include "train/report/whole_appends.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "base/error.h"
#include "base/log.h"
#include "support/temporary_folder.h"

using namespace vfm;

TEST_CASE("records that a full disk refuses are written later, whole and in order") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  train::WholeAppends log(
      io::File(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666), path));
  static std::string said;
  said.clear();
  set_log_sink([](LogLevel, std::string_view text) { said += text; }, LogLevel::warning);
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string first(60, 'a'), second(60, 'b'), third(30, 'c');
  log.add(first);
  log.add(second);
  log.add(third);
  const std::string kept = io::read_file(path);
  const bool syncs = [&] {
    try {
      log.sync();
      return true;
    } catch (const Error&) {
      return false;
    }
  }();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  std::signal(SIGXFSZ, handler);
  set_log_sink(nullptr, LogLevel::warning);
  CHECK(kept == first);
  CHECK_FALSE(syncs);
  CHECK(said == "cannot write '" + path +
                    "': File too large; the run goes on, and writes these records later");
  log.add("d");
  CHECK(io::read_file(path) == first + second + third + "d");
  log.sync();
}

TEST_CASE("a part of a record that cannot be cut off again is completed") {
  const int file = ::memfd_create("log", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  REQUIRE(file >= 0);
  REQUIRE(::fcntl(file, F_SETFL, O_APPEND) == 0);
  REQUIRE(::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  train::WholeAppends log(io::File(file, "log"));
  set_log_sink([](LogLevel, std::string_view) {}, LogLevel::warning);
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string first(60, 'a'), second(60, 'b');
  log.add(first);
  log.add(second);
  log.add("c");
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  std::signal(SIGXFSZ, handler);
  set_log_sink(nullptr, LogLevel::warning);
  log.add("d");
  const std::string all = first + second + "cd";
  std::string found(200, ' ');
  found.resize(static_cast<std::size_t>(::pread(file, found.data(), found.size(), 0)));
  CHECK(found == all);
}
