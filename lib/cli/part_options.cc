// SPDX-License-Identifier: Apache-2.0
#include "cli/part_options.h"

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace vfm::cli {
namespace {

std::string part_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string node_kind() {
  return parts::node_kind_of(part_variable);
}

OptionRow& PartOptions::add(Options& options) {
  return options
      .parsed(
          "--part",
          [this](const std::string& text) {
            choice = parts::parse_part(text, part_variable);
            if (const std::string beat = part_variable("VFM_LEASE_SECONDS"); !beat.empty())
              choice.lease_seconds = parse_seconds(beat);
            if (choice.lease_seconds && *choice.lease_seconds <= 0)
              fail_usage("VFM_LEASE_SECONDS must be above 0");
          },
          "I/N|env|auto|next", "do one part of the work, or parts until all are done")
      .manual(
          "Do part _I_ of _N_, counted from 0. *env* takes _I_ from the environment: from "
          "_VFM_PART_, or _SLURM_ARRAY_TASK_ID_ (plus _VFM_PART_OFFSET_), or "
          "_JOB_COMPLETION_INDEX_, or _HQ_TASK_ID_. *auto* does parts until all are done. *next* "
          "does one part that no other command does. *env/N*, *auto/N* and *next/N* name the "
          "number "
          "of parts, too. See PARTS in *vfm-clip-list*(1).");
}

void PartOptions::add_follow(Options& options) {
  options
      .parsed(
          "--follow", [this](const std::string& text) { choice.follow = parse_seconds(text); },
          "TIME", "with --part: wait for parts of earlier programs")
      .needs(options.row("--part"))
      .manual(
          "Begin a part as soon as earlier programs have done the parts that it needs, and wait "
          "for "
          "these. Give up if for _TIME_, such as _1h_, none of them was done, and no process that "
          "works at them gave a sign of life. See PARTS THAT FOLLOW in *vfm-clip-list*(1).");
}

void PartOptions::add_waiting(Options& options) {
  options
      .parsed(
          "--waiting", [this](const std::string& text) { choice.waiting = parse_bytes(text); },
          "SIZE", "with --part auto: be at most this far ahead")
      .needs(options.row("--part"))
      .manual(
          "Begin no part while finished parts of more bytes than _SIZE_ wait for programs that "
          "follow. See PARTS THAT FOLLOW in *vfm-clip-list*(1).");
}

void PartOptions::check() const {
  if (choice.follow && choice.kind == parts::PartChoice::Kind::next)
    fail_usage("--follow is for one part or --part auto: --part next does not wait");
  if (choice.waiting && choice.kind != parts::PartChoice::Kind::automatic)
    fail_usage("--waiting is for --part auto: a single part does not wait for other programs");
}

}  // namespace vfm::cli
