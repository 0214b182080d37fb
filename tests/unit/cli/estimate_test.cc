// What --dry-run scales, and which records it looks at.
// SPDX-License-Identifier: Apache-2.0
#include "cli/estimate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/sample_progress.h"
#include "io/file.h"
#include "support/temporary_folder.h"

using namespace vfm;
using namespace vfm::cli;

namespace {

void rest(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// Standard output, in a file, but for what the framework has said before.
class Captured {
 public:
  Captured() : before_(::dup(STDOUT_FILENO)) {
    std::cout.flush();
    std::fflush(stdout);
    const io::File file(::open(path().c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), "");
    ::dup2(file.fd(), STDOUT_FILENO);
  }
  ~Captured() { restore(); }
  std::string text() {
    restore();
    return io::read_file(path());
  }

 private:
  std::string path() const { return folder_ / "out"; }
  void restore() {
    if (before_ < 0) return;
    ::dup2(before_, STDOUT_FILENO);
    ::close(std::exchange(before_, -1));
  }
  TemporaryFolder folder_;
  int before_;
};

/// An estimate of shards that need not be there, whose work is given.
struct Trial {
  TemporaryFolder folder;
  std::vector<std::string> inputs;
  std::string output;
  std::function<void(Progress&)> work = [](Progress& progress) {
    progress.start("samples", 0);
    rest(2);
    progress.add(1);
  };
  bool phases = false;
  int jobs = 1;
  std::vector<std::string> worked_on;  // lines of the sample

  Json tell(const std::vector<std::string>& arguments) {
    Captured out;
    inputs = arguments;
    tell_estimate({.inputs = inputs,
                   .folder = output,
                   .input = estimate_input<io::ManifestReader>(inputs),
                   .kind = "shard",
                   .jobs = jobs,
                   .work =
                       [&](Progress& progress, io::ManifestWriter&) {
                         std::ifstream file(inputs.at(0));
                         worked_on.clear();
                         for (std::string line; std::getline(file, line);)
                           worked_on.push_back(line);
                         work(progress);
                         return 0;
                       },
                   .phases = phases,
                   .seconds = [](const io::Record&) { return 60.0; },
                   .samples = [](const io::Record&) { return 1.0; }});
    return parse_json(out.text(), "the estimate");
  }
};

std::vector<std::string> names(int count) {
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i)
    list.push_back(std::to_string(i) + ".tar");
  return list;
}

}  // namespace

TEST_CASE("work of two phases is measured as a whole, and its samples are those of the first") {
  SampleProgress progress(0);
  progress.start("samples", 100);
  for (int i = 0; i < 10; ++i)
    progress.add(10);
  rest(60);
  progress.start("shards", 2);
  progress.add(1);
  progress.add(1);
  rest(60);
  progress.end();
  const double seconds = progress.seconds_for(100);
  CHECK(seconds > 0.119);
  CHECK(progress.seconds_for(1000) == Approx(10 * seconds));
  CHECK(progress.seconds_for(1) == Approx(seconds));  // so long it was in any case
}

TEST_CASE("work that has had its time is stopped where it counts samples") {
  SampleProgress progress(0.02);
  progress.start("samples", 0);
  CHECK_NOTHROW(progress.add(1));
  rest(30);
  CHECK_THROWS_AS(progress.add(1), Enough);
  CHECK(progress.seconds_for(20) > 0.29);
}

TEST_CASE("videos that tell no time count as those that do, or as long as all took") {
  SampleProgress progress(0);
  progress.start("videos", 0);
  const int told = 0, silent = 0;
  CHECK(progress.seconds_for_videos(4) == 0);
  progress.part(&told, 0.0);
  progress.part(&silent, 0.0);
  rest(40);
  progress.part(&told, 0.5);
  progress.part(&told, -1);
  progress.part(&silent, -1);
  CHECK(progress.timed() == 1);
  const double one = progress.seconds_for_videos(1);
  CHECK(one > 0.079);
  CHECK(progress.seconds_for_videos(4) == Approx(4 * one));
  SampleProgress pictures(0);
  pictures.start("videos", 0);
  rest(20);
  pictures.add(5);
  CHECK(pictures.timed() == 0);
  CHECK(pictures.seconds_for_videos(10) > 0.039);
}

TEST_CASE("sixteen records are drawn, or two a job, in an order of chance") {
  Trial trial;
  Json told = trial.tell(names(100));
  CHECK(told["records"] == 100);
  CHECK(told["sampled"] == 16);
  CHECK(told["video_hours"] == Approx(100.0 / 60));
  CHECK(told["hours_a_day"].get<double>() ==
        Approx(100.0 / 60 / told["seconds"].get<double>() * 86400).epsilon(1e-4));
  CHECK_FALSE(told.contains("timed"));
  const std::vector<std::string> drawn = trial.worked_on;
  CHECK(std::set(drawn.begin(), drawn.end()).size() == 16);
  CHECK_FALSE(std::is_sorted(drawn.begin(), drawn.end()));
  trial.tell(names(100));
  CHECK(trial.worked_on == drawn);
  trial.jobs = 40;
  CHECK(trial.tell(names(100))["sampled"] == 80);
  CHECK(trial.tell(names(7))["sampled"] == 7);
}

TEST_CASE("work of several phases is bounded by bytes, not by time") {
  Trial trial;
  trial.phases = true;
  std::vector<std::string> tars;
  for (const char* name : {"a.tar", "b.tar", "c.tar", "d.tar"}) {
    tars.push_back(trial.folder / name);
    std::ofstream(tars.back()) << "";
    std::filesystem::resize_file(tars.back(), 400'000'000);  // holes
  }
  Json told = trial.tell(tars);
  CHECK(told["records"] == 4);
  CHECK(told["sampled"] == 2);
  CHECK(trial.worked_on.size() == 2);
  std::filesystem::resize_file(tars[1], 5'000'000'000);
  CHECK(trial.tell({tars[1]})["sampled"] == 1);
}

TEST_CASE("nothing is left of an estimate, whether or not its work fails") {
  Trial trial;
  trial.tell({"a.tar"});
  CHECK_FALSE(std::filesystem::exists(std::filesystem::path(trial.output).parent_path()));
  trial.work = [&](Progress&) {
    std::filesystem::create_directories(trial.output);
    fail("it broke");
  };
  CHECK_THROWS_WITH(trial.tell({"a.tar"}), "it broke");
  CHECK_FALSE(std::filesystem::exists(std::filesystem::path(trial.output).parent_path()));
  trial.work = [](Progress&) {};
  CHECK_THROWS_WITH(trial.tell({"a.tar"}), Catch::Contains("could be used"));
  CHECK_THROWS_WITH(trial.tell({"a.mp4"}), "no shards in the input");
}
