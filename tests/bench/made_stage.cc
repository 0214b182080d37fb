// A made program of a pipe, whose items take as long as they say and need no processor: it sleeps.
// All else is as in the real ones: records, order, -j, VFM_SHARE, make's jobserver, signals. With
// --cores it sleeps longer where more items are at work than there are processors.
//
// A record: {"kind": "made", "seconds": [0.02, 0.1], ...}. The first of the seconds are this
// program's; what it writes has the rest, and all other keys. With --until FILE an item lasts until
// that file is there besides, with safe points, as decoding has them. With --gpus they are of made
// GPUs, which the record names then. For tests of how slots and GPUs are shared.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/held_bytes.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/stop.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "io/file.h"
#include "io/manifest.h"
#include "made_cores.h"
#include "made_gpus.h"
#include "made_log.h"
#include "share/ordered.h"

namespace {

class MadeStage : public vfm::cli::Tool {
 public:
  std::string name() const override { return "made_stage"; }
  std::string description() const override { return "Sleep as long as each record says."; }
  std::string examples() const override { return "made_stage --fan-out 4 items.jsonl"; }
  void add_options(vfm::cli::Options& options) override {
    input_.add(options, "ITEMS", "manifests");
    jobs_.add(options);
    options.add("--fan-out", fan_out_, "N", "records that an item becomes");
    options.flag("--unlike", unlike_,
                 "one item of twenty takes twenty times as long as the others");
    options.flag("--few", few_, "let few results wait, as if they were large");
    options.add("--log", log_path_, "FILE", "append when each item began and ended, in one write");
    options.add("--begun", begun_path_, "FILE", "append a line as an item begins");
    options.add("--until", until_, "FILE", "an item lasts until this file is there");
    options.flag("--stamp", stamp_, "write when each record came");
    options.flag("--name-gpu", name_gpu_, "write which GPU did the item");
    options.add("--cores", cores_of_, "FILE:COUNT[:OTHERS]",
                "made processors of all programs that name FILE, on which OTHERS always compute");
    options.flag("--away", away_, "items wait without a slot, as for an answer of a server");
    options.flag("--own-pipe", own_pipe_, "open a pipe before all else, as drivers of GPUs do");
    gpus_.add_options(options);
  }

  void check() override {
    int ends[2];
    if (own_pipe_ && ::pipe(ends) != 0) vfm::fail("cannot make a pipe");
  }

  long run(vfm::cli::Context& context) override {
    vfm::share::Slots slots = context.slots(jobs_);
    log_.open(log_path_);
    begun_.open(begun_path_);
    cores_.open(cores_of_);
    has_gpus_ = gpus_.join(jobs_.share, slots);
    vfm::io::ManifestReader reader(
        input_.resolved(), [](const vfm::io::Fault& fault) { vfm::fail("{}", fault.message); });
    context.progress.start("items", 0);
    const std::function<std::size_t(const vfm::Json&)> weight = [](const vfm::Json& item) {
      return vfm::held_bytes(item);
    };
    vfm::share::for_each_ordered<vfm::Json, vfm::Json>(
        slots, [&] { return next(reader); }, [&](vfm::Json& item) { return work(item); },
        [&](vfm::Json& item) {
          if (stamp_) item["at"] = vfm::clock_seconds();
          for (int i = 0; i < fan_out_; ++i)
            context.manifest.write(item);
          context.progress.add();
        },
        few_ ? nullptr : weight);
    gpus_.finished();
    return 0;
  }

 private:
  /// The next item, with its time in "takes".
  std::optional<vfm::Json> next(vfm::io::ManifestReader& reader) {
    auto record = reader.next();
    if (!record) return std::nullopt;
    vfm::Json& seconds = record->json->at("seconds");
    double takes = seconds.at(0).get<double>();
    seconds.erase(0);
    if (unlike_) {
      std::uint64_t mixed = ++number_ * 0x9E3779B97F4A7C15u;
      mixed ^= mixed >> 32;
      takes *= (mixed % 20 == 0 ? 20 : 1) / 1.95;
    }
    record->json["takes"] = takes;
    return std::move(*record->json);
  }

  vfm::Json work(vfm::Json& item) {
    const double begin = vfm::clock_seconds();
    begun_.write("item\n");
    const double takes = item.at("takes").get<double>();
    if (has_gpus_) {
      const std::string gpu = gpus_.work(takes);
      if (name_gpu_) item["gpu"] = gpu;
    } else if (cores_) {
      cores_.work(takes);
    } else {
      const vfm::share::Slots::Change away(!away_);
      std::this_thread::sleep_for(std::chrono::duration<double>(takes));
    }
    while (!until_.empty() && !vfm::io::file_exists(until_)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      vfm::check_stop();
    }
    item.erase("takes");
    log_.write(fmt::format("{:.6f} 1\n{:.6f} -1\n", begin, vfm::clock_seconds()));
    return std::move(item);
  }

  std::string log_path_, begun_path_, until_, cores_of_;
  vfm::MadeLog log_, begun_;
  vfm::cli::InputOptions input_;
  vfm::cli::JobOptions jobs_;
  int fan_out_ = 1;
  bool unlike_ = false, stamp_ = false, few_ = false, name_gpu_ = false, has_gpus_ = false;
  bool own_pipe_ = false, away_ = false;
  std::uint64_t number_ = 0;
  vfm::MadeCores cores_;
  vfm::MadeGpus gpus_;
};

}  // namespace

int main(int argc, char** argv) {
  return vfm::cli::run(argc, argv, {{"", vfm::cli::make<MadeStage>}});
}
