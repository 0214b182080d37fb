// SPDX-License-Identifier: Apache-2.0
#include "dist/mesh.h"

#include <array>
#include <cmath>

#include "base/error.h"

namespace vfm::dist {
namespace {

struct AxisName {
  Axes axes;
  const char* name;
};
constexpr std::array<AxisName, 6> kAxisNames = {{{Axes::tp, "tp"},
                                                 {Axes::cp, "cp"},
                                                 {Axes::dp, "dp"},
                                                 {Axes::shard, "shard"},
                                                 {Axes::replicate, "replicate"},
                                                 {Axes::pp, "pp"}}};

bool includes(Axes all, Axes some) {
  return (static_cast<unsigned>(all) & static_cast<unsigned>(some)) == static_cast<unsigned>(some);
}

/// Of the five single axes, from the fastest.
std::array<std::pair<Axes, int>, 5> sizes_of(const Layout& layout) {
  return {{{Axes::tp, layout.tp},
           {Axes::cp, layout.cp},
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
  return text;
}

Layout nearest_layout(const Layout& wanted, int ranks) {
  Layout best;
  double least = INFINITY;
  for (const int tp : divisors(ranks))
    for (const int cp : divisors(ranks / tp))
      for (const int pp : divisors(ranks / tp / cp)) {
        Layout layout{tp, cp, ranks / tp / cp / pp, pp, 1};
        for (const int shard : divisors(layout.dp))
          if (shard <= wanted.shard && layout.shard == 1) layout.shard = shard;
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
    fail_usage("{} {}; the nearest layout of {} ranks is {}", to_string(wanted), why, ranks,
               to_string(nearest_layout(wanted, ranks)));
  };
  if (wanted.tp < 1 || wanted.cp < 1 || wanted.dp < 0 || wanted.pp < 1 || wanted.shard < 1)
    refuse("has an axis without ranks");
  Layout layout = wanted;
  const std::int64_t others = std::int64_t{wanted.tp} * wanted.cp * wanted.pp;
  if (wanted.dp == 0) {
    if (ranks % others != 0)
      refuse(fmt::format("needs a multiple of {} ranks, not {}", others, ranks));
    layout.dp = static_cast<int>(ranks / others);
  } else if (others * wanted.dp != ranks) {
    refuse(fmt::format("is for {} ranks, not {}", others * wanted.dp, ranks));
  }
  if (layout.dp % layout.shard != 0)
    refuse(fmt::format("cannot be: shard={} does not divide dp={}", layout.shard, layout.dp));
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

Mesh::Mesh(World& world, const Layout& wanted, std::span<const Axes> more)
    : world_(world), layout_(fit_layout(wanted, world.size())) {
  std::vector<Axes> all = {Axes::cp | Axes::dp, Axes::tp | Axes::cp, Axes::cp | Axes::shard};
  for (const AxisName& one : kAxisNames)
    all.push_back(one.axes);
  all.insert(all.end(), more.begin(), more.end());
  for (const Axes axes : all)
    if (!groups_.contains(axes))
      groups_[axes] = world.group(axes_name(axes), ranks_along(axes, layout_, world.rank()));
}

Group& Mesh::group(Axes axes) const {
  const auto found = groups_.find(axes);
  if (found == groups_.end()) fail("the mesh was made without a group of '{}'", axes_name(axes));
  return *found->second;
}

}  // namespace vfm::dist
