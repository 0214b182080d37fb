// Context::slots(): makes slots from -j, make's jobserver, VFM_SLOTS and VFM_SHARE.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "base/address.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cli/meter.h"
#include "cli/options.h"
#include "cli/runner.h"
#include "share/pipe_board.h"
#include "share/slots.h"

namespace vfm::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Returns VFM_SLOTS, or 0 if it is not set.
int slots_of_environment() {
  const std::string text = variable("VFM_SLOTS");
  if (text.empty()) return 0;
  int slots = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, slots);
  if (error != std::errc{} || last != end || slots < 1 || slots > share::PipeBoard::kMostSlots)
    fail_usage("VFM_SLOTS is '{}'; set it to a whole number from 1 to {}, or unset it", text,
               share::PipeBoard::kMostSlots);
  return slots;
}

}  // namespace

void JobOptions::check_environment() {
  slots_of_environment();
  for (const char* name : {"VFM_SHARE", "VFM_SHARE_REPORT"}) {
    const std::string file = variable(name);
    std::string fault = is_utf8(file) ? no_file_message(file) : no_utf8_message(file);
    if (fault.empty() && !url_scheme(file).empty())
      fault = "'" + file + "' is an address; the programs of a machine share a local file";
    if (!fault.empty()) fail_usage("{}: {}", name, fault);
  }
  const std::string page = variable("VFM_SHARE_REPORT");
  if (page.empty()) return;
  if (const std::string fault = page_fault(page); !fault.empty())
    fail_usage("VFM_SHARE_REPORT: {}", fault);
  if (variable("VFM_SHARE").empty())
    fail_usage("VFM_SHARE_REPORT is set, and VFM_SHARE is not; set both");
}

void JobOptions::add(Options& options) {
  share = variable("VFM_SHARE");
  share_report = variable("VFM_SHARE_REPORT");
  options.add("-j,--jobs", jobs, "N", "work on N items at once")
      .in(1, share::PipeBoard::kMostSlots)
      .shown("VFM_SLOTS, or one per processor")
      .everyday()
      .explained_in("vfm(7)");
}

share::Slots Context::slots(const JobOptions& jobs, int threads) const {
  if (threads == 0) threads = jobs.jobs;
  const int given = slots_of_environment();
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int otherwise = given > 0 ? given : processors;
  if (jobs.share.empty()) return share::Slots(threads > 0 ? threads : otherwise, makeflags);
  // The jobserver of make already shares the slots, so the file only shows them.
  const int shared = share::Slots::finds_jobserver(makeflags) ? share::PipeBoard::kNone : given;
  auto board = std::make_shared<share::PipeBoard>(jobs.share, shared, otherwise,
                                                  share::PipeBoard::Stage{.name = program});
  meter.watch(board, jobs.share, jobs.share_report);
  if (threads == 0) threads = board->slots() > 0 ? board->slots() : otherwise;
  return share::Slots(threads, makeflags, std::move(board));
}

}  // namespace vfm::cli
