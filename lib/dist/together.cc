// SPDX-License-Identifier: Apache-2.0
#include "dist/together.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/run_end.h"
#include "base/stop.h"

namespace vfm::dist {

namespace {

/// What others are told of a failure: what is refused with its words.
std::string told_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.kind() == ErrorKind::usage ? fmt::format("refused: {}", error.what()) : "failed";
  } catch (...) {
    return "failed";
  }
}

/// Text of rank 0.
std::string told_by_first(World& world, std::string text) {
  std::size_t size = text.size();
  world.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  world.broadcast(std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace

Verdict attempt_on_all_ranks(World& world, const std::function<void()>& act,
                             const std::function<void()>& clean_up) {
  Verdict verdict;
  try {
    act();
  } catch (const Stopped&) {
    // A signal ends each rank by itself, and nothing is said of it.
    if (stop_signal() != 0 || world.size() == 1)
      verdict.failure = std::current_exception();
    else
      verdict.failure = std::make_exception_ptr(Error(run_end_message()));
  } catch (...) {
    verdict.failure = std::current_exception();
  }
  const std::vector<std::string> failed =
      world.gather(verdict.failure ? told_of(verdict.failure) : "");
  std::string told;
  for (std::size_t rank = 0; rank < failed.size() && verdict.rank < 0; ++rank)
    if (!failed[rank].empty()) verdict.rank = static_cast<int>(rank), told = failed[rank];
  verdict.all_refuse = std::ranges::all_of(failed, [&](const auto& text) { return text == told; });
  if (verdict.rank >= 0 && clean_up) clean_up();  // on rank 0: nobody else has an answer yet
  world.broadcast(std::as_writable_bytes(std::span(&verdict.rank, 1)));
  if (verdict.rank < 0) return verdict;
  world.broadcast(std::as_writable_bytes(std::span(&verdict.all_refuse, 1)));
  constexpr std::string_view kRefused = "refused: ";
  if (told = told_by_first(world, std::move(told)); told.starts_with(kRefused))
    verdict.refusal = told.substr(kRefused.size());
  return verdict;
}

void fail_on_all_ranks(World& world, const Verdict& verdict) {
  if (world.size() == 1) std::rethrow_exception(verdict.failure);
  if (!verdict.refusal.empty())
    throw RefusedTogether(verdict.refusal, verdict.rank, verdict.all_refuse);
  if (verdict.failure && verdict.rank == world.rank()) std::rethrow_exception(verdict.failure);
  // A launcher whose first rank has said why it ends sends the others a signal: they say nothing.
  if (stop_signal() != 0) throw Stopped();
  world.barrier();  // to which the rank that failed does not come
  fail("rank {} has failed", verdict.rank);
}

void on_all_ranks(World& world, const std::function<void()>& act,
                  const std::function<void()>& clean_up) {
  const Verdict verdict = attempt_on_all_ranks(world, act, clean_up);
  if (verdict.rank >= 0) fail_on_all_ranks(world, verdict);
}

std::vector<int> deal(std::span<const std::uint64_t> sizes, int ranks) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return sizes[i]; });
  std::vector<std::uint64_t> loads(static_cast<std::size_t>(ranks), 0);
  std::vector<int> rank_of(sizes.size());
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(loads);
    rank_of[i] = static_cast<int>(least - loads.begin());
    *least += sizes[i];
  }
  return rank_of;
}

}  // namespace vfm::dist
