// SPDX-License-Identifier: Apache-2.0
#include "dist/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/counted.h"

namespace vfm::dist {
namespace {

constexpr int kMostRanks = 1 << 16;

int heads_ranks(const Layout& layout) {
  return layout.cp_kind == CpKind::all_to_all_ring ? std::max(1, layout.cp_heads) : 1;
}

int shard_ranks(const Layout& layout) {
  return layout.shards_state() ? std::max(1, layout.dp / layout.replicate) : 1;
}

constexpr Axis kAxes[] = {
    {.axes = Axes::tp,
     .name = "tp",
     .size = &Layout::tp,
     .always_named = true,
     .most = kMostRanks,
     .of_clips = true,
     .unit = "ranks",
     .words = "Ranks that share heads and widths; a divisor of the number of heads."},
    {.axes = Axes::cp,
     .name = "cp",
     .size = &Layout::cp,
     .always_named = true,
     .most = kMostRanks,
     .of_clips = true,
     .unit = "ranks",
     .words = "Ranks that share the tokens of a sample.",
     .inner = {Axes::cp_heads, "cp_heads"},
     .inner_size = heads_ranks,
     .outer = {Axes::cp_ring, "cp_ring"}},
    {.axes = Axes::cfg, .name = "cfg", .size = &Layout::cfg, .of_clips = true},
    {.axes = Axes::dp,
     .name = "dp",
     .size = &Layout::dp,
     .shares_sample = false,
     .always_named = true,
     .inner = {Axes::shard, "shard"},
     .inner_size = shard_ranks,
     .outer = {Axes::replicate, "replicate"}},
    {.axes = Axes::pp,
     .name = "pp",
     .size = &Layout::pp,
     .most = 1024,
     .of_clips = true,
     .unit = "stages",
     .words = "Stages of a pipeline, each with some of the blocks. Not for type *tokenizer*."},
};

/// The axes and the parts of axes, from the closest ranks, with the number of ranks along each.
std::vector<std::pair<Axes, int>> sizes_of(const Layout& layout) {
  std::vector<std::pair<Axes, int>> sizes;
  for (const Axis& axis : kAxes) {
    const int all = layout.*axis.size;
    if (axis.inner_size == nullptr) {
      sizes.emplace_back(axis.axes, all);
      continue;
    }
    const int inner = axis.inner_size(layout);
    sizes.emplace_back(axis.inner.axes, inner);
    sizes.emplace_back(axis.outer.axes, all / inner);
  }
  return sizes;
}

std::vector<int> divisors(int number) {
  std::vector<int> all;
  for (int i = 1; i <= number; ++i)
    if (number % i == 0) all.push_back(i);
  return all;
}

/// The largest divisor of `number` that is not above `limit`.
int divisor_up_to(int limit, int number) {
  int largest = 1;
  for (const int divisor : divisors(number))
    if (divisor <= limit) largest = divisor;
  return largest;
}

double distance(int wanted, int size) {
  return std::abs(std::log(static_cast<double>(size) / std::max(wanted, 1)));
}

}  // namespace

std::span<const Axis> all_axes() {
  return kAxes;
}

std::string axes_name(Axes axes) {
  std::string text;
  const auto add = [&](Axes some, std::string_view name) {
    if (some == Axes::none || !includes(axes, some)) return false;
    if (!text.empty()) text += '+';
    text += name;
    return true;
  };
  for (const Axis& axis : kAxes)
    if (!add(axis.axes, axis.name))
      for (const Axis::Part& part : {axis.inner, axis.outer})
        add(part.axes, part.name);
  return text;
}

Axes axes_named(std::string_view name) {
  Axes axes = Axes::none;
  while (!name.empty()) {
    const std::string_view one = name.substr(0, name.find('+'));
    name.remove_prefix(std::min(name.size(), one.size() + 1));
    Axes found = Axes::none;
    for (const Axis& axis : kAxes)
      for (const Axis::Part& part : {Axis::Part{axis.axes, axis.name}, axis.inner, axis.outer})
        if (part.name == one) found = part.axes;
    if (found == Axes::none) fail("no axis '{}'", one);
    axes = axes | found;
  }
  return axes;
}

int Layout::sharers() const {
  int ranks = 1;
  for (const Axis& axis : kAxes)
    if (axis.shares_sample) ranks *= this->*axis.size;
  return ranks;
}

Axes Layout::sharing() const {
  Axes axes = Axes::tp | Axes::cp;
  for (const Axis& axis : kAxes)
    if (axis.shares_sample && this->*axis.size > 1) axes = axes | axis.axes;
  return axes;
}

Layout Layout::sizes() const {
  Layout sizes;
  for (const Axis& axis : kAxes)
    sizes.*axis.size = this->*axis.size;
  return sizes;
}

std::string to_string(const Layout& layout) {
  std::string text;
  for (const Axis& axis : kAxes)
    if (const int size = layout.*axis.size;
        axis.axes == Axes::dp ? size != 0 : axis.always_named || axis.axes == Axes::pp || size != 1)
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis.name, size);
  if (const int ranks = shard_ranks(layout); ranks != 1) text += fmt::format(" shard={}", ranks);
  if (const int ranks = heads_ranks(layout); ranks != 1) text += fmt::format(" cp_heads={}", ranks);
  return text;
}

std::vector<Layout> layouts_of(int ranks) {
  std::vector<Layout> all(1);
  for (const Axis& axis : kAxes) {
    if (axis.most == 0) continue;
    std::vector<Layout> longer;
    for (const Layout& one : all)
      for (const int size : divisors(ranks / one.sharers())) {
        longer.push_back(one);
        longer.back().*axis.size = size;
      }
    all = std::move(longer);
  }
  for (Layout& one : all)
    one.dp = ranks / one.sharers();
  return all;
}

double distance_of_sizes(const Layout& wanted, const Layout& layout) {
  double far = 0;
  for (const Axis& axis : kAxes)
    if (axis.most > 0) far += distance(wanted.*axis.size, layout.*axis.size);
  return far;
}

Layout nearest_layout(const Layout& wanted, int ranks) {
  Layout best;
  double least = INFINITY;
  std::vector<Layout> all = layouts_of(ranks);
  std::ranges::reverse(all);
  for (Layout layout : all) {
    layout.shard = wanted.shard;
    if (layout.shards_state()) layout.replicate = divisor_up_to(wanted.replicate, layout.dp);
    layout.cp_kind = wanted.cp_kind;
    if (wanted.cp_heads > 0) layout.cp_heads = divisor_up_to(wanted.cp_heads, layout.cp);
    const double far = distance_of_sizes(wanted, layout) +
                       (layout.shards_state() ? distance(wanted.replicate, layout.replicate) : 0) +
                       (wanted.dp == 0 ? 0 : distance(wanted.dp, layout.dp));
    if (far > least - 1e-9) continue;
    least = far;
    best = layout;
  }
  return best;
}

Layout fit_layout(const Layout& wanted, int ranks) {
  const auto refuse = [&](const std::string& why) {
    throw LayoutRefused(fmt::format("{} {}", to_string(wanted), why),
                        fmt::format("; the nearest layout of {} is {}", counted(ranks, "rank"),
                                    to_string(nearest_layout(wanted, ranks))));
  };
  std::int64_t others = 1;
  for (const Axis& axis : kAxes) {
    if (wanted.*axis.size < (axis.axes == Axes::dp ? 0 : 1)) refuse("has an axis without ranks");
    if (axis.axes != Axes::dp) others *= wanted.*axis.size;
  }
  if (wanted.replicate < 1 || wanted.cp_heads < 0) refuse("has an axis without ranks");
  Layout layout = wanted;
  if (wanted.dp == 0) {
    if (ranks % others != 0)
      refuse(fmt::format("needs a multiple of {}, not {}", counted(others, "rank"), ranks));
    layout.dp = static_cast<int>(ranks / others);
  } else if (others * wanted.dp != ranks) {
    refuse(fmt::format("is for {}, not {}", counted(others * wanted.dp, "rank"), ranks));
  }
  if (layout.shards_state() && layout.dp % layout.replicate != 0)
    refuse(
        fmt::format("cannot be: replicate={} does not divide dp={}", layout.replicate, layout.dp));
  if (const int heads = heads_ranks(layout); layout.cp % heads != 0)
    refuse(fmt::format("cannot be: cp_heads={} does not divide cp={}", heads, layout.cp));
  return layout;
}

std::vector<int> ranks_along(Axes axes, const Layout& layout, int rank) {
  std::vector<int> ranks = {0};
  int stride = 1;
  // From the fastest axis to the slowest, so they stay ascending.
  for (const auto& [axis, size] : sizes_of(layout)) {
    const int own = rank / stride % size;
    std::vector<int> longer;
    for (int i = 0; i < size; ++i) {
      if (!includes(axes, axis) && i != own) continue;
      for (const int before : ranks)
        longer.push_back(before + i * stride);
    }
    ranks = std::move(longer);
    stride *= size;
  }
  return ranks;
}

std::string split_groups(Axes axes, const Layout& layout, std::span<const std::string> hosts) {
  const auto on_one_host = [&](const std::vector<int>& ranks) {
    return std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
      return hosts[static_cast<std::size_t>(rank)] ==
             hosts[static_cast<std::size_t>(ranks.front())];
    });
  };
  std::string split;
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    const std::vector<int> ranks = ranks_along(axes, layout, rank);
    if (ranks.front() != rank || on_one_host(ranks)) continue;
    std::vector<std::string> names;
    for (const int one : ranks)
      if (const std::string& name = hosts[static_cast<std::size_t>(one)];
          std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    split += fmt::format("{}ranks {} on {}", split.empty() ? "" : "; ", fmt::join(ranks, " "),
                         fmt::join(names, " "));
  }
  if (split.empty()) return "";
  int fits = 1;
  for (const int tp : divisors(layout.tp)) {
    Layout smaller = layout;
    smaller.tp = tp;
    smaller.cp = layout.cp * (layout.tp / tp);
    bool fit = true;
    for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank)
      fit = fit && on_one_host(ranks_along(Axes::tp, smaller, rank));
    if (fit) fits = std::max(fits, tp);
  }
  return fmt::format("groups along {} lie on several hosts ({}); the largest tp within them is {}",
                     axes_name(axes), split, fits);
}

}  // namespace vfm::dist
