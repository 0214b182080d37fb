// What decides about slots: -j, make's jobserver, VFM_SLOTS and --share.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/pipe_board.h"
#include "base/slots.h"
#include "cli/meter.h"
#include "cli/options.h"
#include "cli/runner.h"

namespace vfm::cli {
namespace {

/// 0: it is not set.
int slots_of_environment(const std::string& text) {
  if (text.empty()) return 0;
  int slots = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, slots);
  if (error != std::errc{} || last != end || slots < 1 || slots > PipeBoard::kMostSlots)
    fail_usage("VFM_SLOTS is '{}'; set it to a whole number from 1 to {}, or unset it", text,
               PipeBoard::kMostSlots);
  return slots;
}

}  // namespace

void JobOptions::check_slots(const std::string& vfm_slots) {
  slots_of_environment(vfm_slots);
}

Slots Context::slots(const JobOptions& jobs, int threads) const {
  if (threads == 0) threads = jobs.jobs;
  const int given = slots_of_environment(vfm_slots);
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int otherwise = given > 0 ? given : processors;
  if (jobs.share.empty()) return Slots(threads > 0 ? threads : otherwise, makeflags);
  // make's slots are shared already, with all of its recipes: then the file only shows.
  const int shared = Slots::finds_jobserver(makeflags) ? PipeBoard::kNone : given;
  auto board =
      std::make_shared<PipeBoard>(jobs.share, shared, otherwise, PipeBoard::Stage{.name = program});
  meter.watch(board, jobs.share, jobs.share_report);
  if (threads == 0) threads = board->slots() > 0 ? board->slots() : otherwise;
  return Slots(threads, makeflags, std::move(board));
}

}  // namespace vfm::cli
