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

/// Error{usage} that every rank throws, with the same text, when one rank refuses what the user
/// asks for. All ranks are at the same point and none waits for another, so they can end in order.
class RefusedTogether : public Error {
 public:
  /// `rank` is the first rank that refuses. `all`: every rank refuses, with the same text.
  RefusedTogether(const std::string& message, int rank, bool all)
      : Error(message, ErrorKind::usage), rank_(rank), all_(all) {}
  int rank() const noexcept { return rank_; }
  bool all() const noexcept { return all_; }

 private:
  int rank_;
  bool all_;
};

/// The result of work that each rank did.
struct Verdict {
  int rank = -1;                    ///< the first rank that failed; -1: none
  std::exception_ptr failure = {};  ///< what this rank threw; null: nothing
  /// The text of an Error{usage} of that first rank; empty: another failure.
  std::string refusal = {};
  bool all_refuse = false;  ///< every rank refused, with the same text
};

/// Calls `act`, which exchanges nothing, on every rank. Then all ranks learn whether it failed
/// anywhere. If so, `clean_up` runs on rank 0 before any rank goes on. A disk that is full on one
/// rank is an Error like any other. A collective.
Verdict attempt_on_all_ranks(World& world, const std::function<void()>& act,
                             const std::function<void()>& clean_up = {});

/// Throws for a `verdict` with a failure. After a refusal every rank throws RefusedTogether.
/// Otherwise the first rank that failed throws again what it threw; its caller reports that with
/// rank and host, and ends the others (World::end_all), which wait here. A collective.
[[noreturn]] void fail_on_all_ranks(World& world, const Verdict& verdict);

/// Calls attempt_on_all_ranks(), and fail_on_all_ranks() if it failed. A collective.
void on_all_ranks(World& world, const std::function<void()>& act,
                  const std::function<void()>& clean_up = {});

/// Deals pieces of work of these sizes to ranks: the largest piece first, to the rank with the
/// least work. On a tie the first piece or rank is taken. Returns the rank of each piece. Pure.
std::vector<int> deal(std::span<const std::uint64_t> sizes, int ranks);

}  // namespace vfm::dist
