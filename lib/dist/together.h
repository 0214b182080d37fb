// Work that the ranks of a run do together, where any of them may fail.
//
// Thread-safety: the thread that made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "dist/world.h"

namespace vfm::dist {

/// What every rank throws where one refuses what the user asks for: all are at one point, and none
/// waits for another, so that they can end in order. Error{usage}, the same everywhere.
class RefusedTogether : public Error {
 public:
  /// `rank` is the first that refuses; `all`: every rank does, with the same words.
  RefusedTogether(const std::string& message, int rank, bool all)
      : Error(message, ErrorKind::usage), rank_(rank), all_(all) {}
  int rank() const noexcept { return rank_; }
  bool all() const noexcept { return all_; }

 private:
  int rank_;
  bool all_;
};

/// What became of work that each rank did.
struct Verdict {
  int rank = -1;                    ///< the first that failed; -1: none did
  std::exception_ptr failure = {};  ///< of this rank
  std::string refusal = {};         ///< what that first one refuses; "": it does not
  bool all_refuse = false;          ///< with the same words
};

/// Does `act`, which exchanges nothing, on every rank; then all know whether it failed anywhere. If
/// so, `clean_up` runs on rank 0 before anyone goes on. A disk that is full for one rank of several
/// is an Error like any other. A collective.
Verdict attempt_on_all_ranks(World& world, const std::function<void()>& act,
                             const std::function<void()>& clean_up = {});

/// The first rank that failed throws what it threw there: its caller says so once, with rank and
/// host, and ends the others (World::end_all), which wait. What is refused all throw
/// (RefusedTogether). A collective.
[[noreturn]] void fail_on_all_ranks(World& world, const Verdict& verdict);

/// Both, where it fails. A collective.
void on_all_ranks(World& world, const std::function<void()>& act,
                  const std::function<void()>& clean_up = {});

/// Deals work of these sizes to ranks: the largest first, to the rank that has least; the first
/// piece and the first rank of several alike. Returns the rank of each. Pure.
std::vector<int> deal(std::span<const std::uint64_t> sizes, int ranks);

}  // namespace vfm::dist
