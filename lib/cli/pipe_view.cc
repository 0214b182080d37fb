// SPDX-License-Identifier: Apache-2.0
#include "cli/pipe_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/harmless.h"
#include "base/log.h"
#include "base/units.h"
#include "io/atomic_file.h"
#include "report/html.h"
#include "share/gpu_look.h"

namespace vfm::cli {
namespace {

constexpr std::chrono::milliseconds kRedrawn{500};
constexpr int kLooksPerPage = 10;
constexpr std::size_t kMostKept = 1000;
constexpr double kTold = 0.05;  // Smaller shares of the time are not in the last line.

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

}  // namespace

PipeView::PipeView(std::shared_ptr<share::PipeBoard> board, const std::string& share,
                   std::function<void(const share::PipeLook&)> show, std::string page)
    : board_(std::move(board)), show_(std::move(show)), page_(std::move(page)), watch_(share) {
  first_ = before_ = board_->stages();
  first_gpus_ = gpus_ = watch_.look();
  thread_ = std::thread([this] { watch(); });
}

PipeView::~PipeView() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  end_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PipeView::watch() {
  for (int count = 1;; ++count) {
    {
      std::unique_lock lock(mutex_);
      if (end_.wait_for(lock, kRedrawn, [&] { return ending_; })) return;
    }
    const share::PipeLook now = look();
    if (show_) show_(now);
    if (page_.empty() || count % kLooksPerPage != 0) continue;
    try {
      write_page();
    } catch (const Error& error) {
      log_info("{}", error.what());  // finish() reports the error.
    } catch (const Stopped&) {
      return;  // The disk is full, which finish() reports too.
    }
  }
}

share::PipeLook PipeView::look() {
  const Clock::time_point now = Clock::now();
  const std::vector<share::StageState> after = board_->stages();
  share::PipeLook look = share::look_between(
      before_, after, std::chrono::duration<double>(now - last_).count(), board_->slots());
  share::GpuStates gpus = watch_.look();
  share::add_gpus(look, gpus_, gpus);
  before_ = after;
  gpus_ = std::move(gpus);
  last_ = now;
  keep(look);
  return look;
}

void PipeView::keep(const share::PipeLook& look) {
  const share::Bottleneck bottleneck = share::find_bottleneck(look);
  const auto names = share::distinct_names(before_);
  if (bottleneck.stage >= 0) {
    const auto stage = static_cast<std::size_t>(bottleneck.stage);
    auto& [name, seconds] = bottleneck_seconds_[before_[stage].pid];
    name = names[stage];
    seconds += look.seconds;
  } else if (!bottleneck.why.empty()) {
    bottleneck_seconds_[0].second += look.seconds;
  }
  if (page_.empty() || looks_++ % every_ != 0) return;
  kept_.push_back({std::chrono::duration<double>(last_ - begin_).count(), look});
  if (kept_.size() < kMostKept) return;
  for (std::size_t i = 1; i < kept_.size() / 2; ++i)
    kept_[i] = std::move(kept_[2 * i]);
  kept_.resize(kept_.size() / 2);
  every_ *= 2;
}

void PipeView::finish() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  end_.notify_all();
  thread_.join();
  look();
  for (share::StageState& state : before_)
    if (state.self) state.alive = false;
  if (show_) show_(whole_run());
  if (!page_.empty()) write_page();
}

share::PipeLook PipeView::whole_run() const {
  share::PipeLook whole = share::look_between(first_, before_, seconds(), board_->slots());
  share::add_gpus(whole, first_gpus_, gpus_);
  for (const auto& [name, share] : bottlenecks())
    if (share >= kTold || whole.held_up.empty())
      whole.held_up +=
          fmt::format("{}{} {}", whole.held_up.empty() ? "" : ", ", harmless(name), percent(share));
  if (!whole.held_up.empty()) whole.held_up += " of the time";
  return whole;
}

/// Returns the programs and their shares of the time, the largest share first.
std::vector<std::pair<std::string, double>> PipeView::bottlenecks() const {
  std::vector<std::pair<std::string, double>> found;
  const auto names = share::distinct_names(before_);
  for (const auto& [pid, known] : bottleneck_seconds_) {
    std::string name = pid == 0 ? "none: the input is slow" : known.first;
    for (std::size_t i = 0; i < before_.size(); ++i)
      if (before_[i].pid == pid) name = names[i];
    found.emplace_back(std::move(name), known.second / std::max(seconds(), 1e-9));
  }
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.second > b.second; });
  return found;
}

void PipeView::write_page() const {
  report::Page page("Programs of a pipe");
  const auto names = share::distinct_names(before_);
  page.paragraph(fmt::format("{} on one machine, over {}. Slots: {}.",
                             counted(names.size(), "program"), format_seconds(seconds()),
                             board_->slots() > 0
                                 ? fmt::format("{} that they share", board_->slots())
                                 : std::string("those of make")));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const share::StageState& s = before_[i];
    const double age = std::max(s.age, 1e-9);
    rows.push_back({names[i], fmt::format("{} {}", s.done, s.unit),
                    format_count(static_cast<double>(s.done) / age),
                    fmt::format("{:.2f}", s.busy_seconds / age),
                    fmt::format("{:.2f}", s.slot_seconds / age), percent(s.input_seconds / age),
                    percent(s.output_seconds / age),
                    s.stopped ? "is stopped"
                    : s.alive ? "runs"
                              : "ended"});
  }
  page.table({"program", "done", "a second", "slots, mean", "threads without slot, mean",
              "waits for input", "for its reader", "state"},
             rows);
  std::vector<std::vector<std::string>> shares;
  for (const auto& [name, share] : bottlenecks())
    shares.push_back({name, percent(share)});
  if (!shares.empty()) page.table({"bottleneck", "of the time"}, shares);
  const auto chart = [&](const char* label, const char* caption, auto value) {
    std::vector<report::Series> lines;
    for (std::size_t i = 0; i < before_.size(); ++i) {
      report::Series& line = lines.emplace_back();
      line.name = names[i];
      for (const Kept& kept : kept_)
        for (const share::StageLook& stage : kept.look.stages)
          if (stage.state.pid == before_[i].pid && stage.state.name == before_[i].name) {
            line.x.push_back(kept.seconds);
            line.y.push_back(value(stage));
          }
    }
    page.svg(report::line_chart(lines, "seconds", label), caption);
  };
  chart("slots", "Slots that each program had.", [](const share::StageLook& s) { return s.slots; });
  chart("units a second", "Items that each program did per second, in its own units.",
        [](const share::StageLook& s) { return s.rate; });
  chart("waiting", "Items that were read and had no slot yet.",
        [](const share::StageLook& s) { return s.waiting; });
  if (!gpus_.stages.empty()) {
    write_gpus(page);
    chart("GPUs", "GPUs that each program kept busy.", [](const share::StageLook& s) {
      double busy = 0;
      for (const share::GpuLook& kind : s.gpus)
        if (kind.state.kind == "compute") busy += kind.busy;
      return busy;
    });
  }
  // All programs of the pipe may write the page, without a message. The last one's stays.
  const io::QuietWaits quiet(true);
  page.write(page_);
}

void PipeView::write_gpus(report::Page& page) const {
  page.paragraph(fmt::format("GPUs: {} that the programs share.", gpus_.gpus.size()));
  page.table(share::gpu_columns(), share::gpu_rows(gpus_));
  const auto names = share::distinct_names(before_);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < before_.size(); ++i)
    for (const share::GpuStageState& stage : gpus_.stages)
      if (stage.pid == before_[i].pid)
        rows.push_back(share::gpu_stage_row(names[i], stage, before_[i].age));
  page.table(share::gpu_stage_columns(), rows);
}

}  // namespace vfm::cli
