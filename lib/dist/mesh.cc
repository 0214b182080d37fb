// SPDX-License-Identifier: Apache-2.0
#include "dist/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/counted.h"
#include "base/log.h"

namespace vfm::dist {
namespace {

struct AxisName {
  Axes axes;
  const char* name;
};
constexpr std::array<AxisName, 8> kAxisNames = {{{Axes::tp, "tp"},
                                                 {Axes::cp, "cp"},
                                                 {Axes::cp_heads, "cp_heads"},
                                                 {Axes::cp_ring, "cp_ring"},
                                                 {Axes::dp, "dp"},
                                                 {Axes::shard, "shard"},
                                                 {Axes::replicate, "replicate"},
                                                 {Axes::pp, "pp"}}};

bool includes(Axes all, Axes some) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(some)) == static_cast<unsigned>(some);
}

/// Of the six single axes, from the fastest.
std::array<std::pair<Axes, int>, 6> sizes_of(const Layout& layout) {
  return {{{Axes::tp, layout.tp},
           {Axes::cp_heads, layout.cp_heads},
           {Axes::cp_ring, layout.cp / layout.cp_heads},
           {Axes::shard, layout.shard},
           {Axes::replicate, layout.dp / layout.shard},
           {Axes::pp, layout.pp}}};
}

std::vector<int> divisors(int number) {
  std::vector<int> all;
  for (int i = number; i > 0; --i)
    if (number % i == 0) all.push_back(i);
  return all;
}

double distance(int wanted, int size) {
  return std::abs(std::log(static_cast<double>(size) / std::max(wanted, 1)));
}

}  // namespace

std::string axes_name(Axes axes) {
  std::string text;
  unsigned left = static_cast<unsigned>(axes);
  for (const auto& [axis, name] : kAxisNames)
    if (includes(static_cast<Axes>(left), axis)) {
      text += (text.empty() ? "" : "+") + std::string(name);
      left &= ~static_cast<unsigned>(axis);
    }
  return text;
}

std::string to_string(const Layout& layout) {
  std::string text = fmt::format("tp={} cp={}", layout.tp, layout.cp);
  if (layout.dp != 0) text += fmt::format(" dp={}", layout.dp);
  text += fmt::format(" pp={}", layout.pp);
  if (layout.shard != 1) text += fmt::format(" shard={}", layout.shard);
  if (layout.cp_heads != 1) text += fmt::format(" cp_heads={}", layout.cp_heads);
  return text;
}

Layout nearest_layout(const Layout& wanted, int ranks) {
  Layout best;
  double least = INFINITY;
  for (const int tp : divisors(ranks))
    for (const int cp : divisors(ranks / tp))
      for (const int pp : divisors(ranks / tp / cp)) {
        Layout layout{tp, cp, ranks / tp / cp / pp, pp, 1, 1};
        for (const int shard : divisors(layout.dp))
          if (shard <= wanted.shard && layout.shard == 1) layout.shard = shard;
        for (const int heads : divisors(cp))
          if (heads <= wanted.cp_heads && layout.cp_heads == 1) layout.cp_heads = heads;
        const double far = distance(wanted.tp, tp) + distance(wanted.cp, cp) +
                           distance(wanted.pp, pp) + distance(wanted.shard, layout.shard) +
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
  if (wanted.tp < 1 || wanted.cp < 1 || wanted.dp < 0 || wanted.pp < 1 || wanted.shard < 1 ||
      wanted.cp_heads < 1)
    refuse("has an axis without ranks");
  Layout layout = wanted;
  const std::int64_t others = std::int64_t{wanted.tp} * wanted.cp * wanted.pp;
  if (wanted.dp == 0) {
    if (ranks % others != 0)
      refuse(fmt::format("needs a multiple of {}, not {}", counted(others, "rank"), ranks));
    layout.dp = static_cast<int>(ranks / others);
  } else if (others * wanted.dp != ranks) {
    refuse(fmt::format("is for {}, not {}", counted(others * wanted.dp, "rank"), ranks));
  }
  if (layout.dp % layout.shard != 0)
    refuse(fmt::format("cannot be: shard={} does not divide dp={}", layout.shard, layout.dp));
  if (layout.cp % layout.cp_heads != 0)
    refuse(fmt::format("cannot be: cp_heads={} does not divide cp={}", layout.cp_heads, layout.cp));
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

Mesh::Mesh(World& world, const Layout& wanted, std::span<const Axes> more)
    : world_(world), layout_(fit_layout(wanted, world.size())) {
  std::vector<Axes> all = {Axes::cp | Axes::dp, Axes::tp | Axes::cp, Axes::cp | Axes::shard};
  const bool split = layout_.cp_heads > 1 && layout_.cp_heads < layout_.cp;
  for (const AxisName& one : kAxisNames)
    if (split || (one.axes != Axes::cp_heads && one.axes != Axes::cp_ring)) all.push_back(one.axes);
  all.insert(all.end(), more.begin(), more.end());
  for (const Axes axes : all)
    if (!groups_.contains(axes))
      groups_[axes] = world.group(axes_name(axes), ranks_along(axes, layout_, world.rank()));
  if (layout_.pp > 1) upstream_ = world.group(axes_name(Axes::pp), group(Axes::pp).ranks());
}

Group& Mesh::group(Axes axes) const {
  const auto found = groups_.find(axes);
  if (found == groups_.end()) fail("the mesh was made without a group of '{}'", axes_name(axes));
  return *found->second;
}

void Mesh::warn_of_slow_tp() const {
  if (layout_.tp == 1) return;
  const std::vector<std::string> hosts = world_.gather(world_.host());
  if (world_.rank() != 0) return;
  if (const std::string split = split_groups(Axes::tp, layout_, hosts); !split.empty())
    log_warning("{}: each layer then waits for the network; set parallel.tp so that it fits",
                split);
}

}  // namespace vfm::dist
