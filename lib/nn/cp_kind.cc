// SPDX-License-Identifier: Apache-2.0
#include "nn/cp_kind.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/format.h"
#include "base/listed.h"

namespace vfm::nn {
namespace {

// In the order of CpKind.
constexpr std::array<std::string_view, 5> kCpKinds = {"auto", "gather", "all_to_all", "ring",
                                                      "all_to_all+ring"};

CpChoice choice_of(int heads, int cp) {
  if (heads == cp) return {CpKind::all_to_all, cp};
  return {heads == 1 ? CpKind::ring : CpKind::all_to_all_ring, heads};
}

// Whether so many ranks of cp can share the heads that a rank of tp has.
bool heads_for(int ranks, const HeadShape& shape, const CpRanks& sizes) {
  return shape.heads % (sizes.tp * ranks) == 0 && shape.key_heads % (sizes.tp * ranks) == 0;
}

// The largest divisor of cp, below `limit`, of which `fits` is true; 1 if there is none.
template <class Fits>
int most_ranks(int cp, int limit, const Fits& fits) {
  for (int ranks = limit; ranks > 1; --ranks)
    if (cp % ranks == 0 && fits(ranks)) return ranks;
  return 1;
}

}  // namespace

std::span<const std::string_view> cp_kind_names() {
  return kCpKinds;
}

std::string_view cp_kind_name(CpKind kind) {
  return kCpKinds[static_cast<std::size_t>(kind)];
}

CpKind parse_cp_kind(std::string_view name) {
  for (std::size_t i = 0; i < kCpKinds.size(); ++i)
    if (kCpKinds[i] == name) return static_cast<CpKind>(i);
  fail_usage("no parallel.cp_kind '{}'; there are {}", name,
             listed(cp_kind_names().subspan(1), " and "));
}

CpBytes cp_bytes(const CpChoice& choice, const HeadShape& shape, const CpRanks& ranks,
                 std::size_t element) {
  const double size = static_cast<double>(element), c = ranks.cp,
               own = static_cast<double>(ranks.tokens) / c;
  const double head = shape.head_dim / static_cast<double>(ranks.tp), all = shape.heads * head,
               keys = 2 * shape.key_heads * head;
  if (choice.kind == CpKind::gather) {
    const double bytes = (c - 1) * own * keys * size;
    return {bytes, bytes};
  }
  // All of a rank's rows but its own share of their heads; then parts of more rows and fewer heads.
  const double u = choice.heads;
  const double changed = (2 * all + keys) * (u - 1) / u * own * size;
  const double round = (c / u - 1) * (own * u) * (keys / u);
  return {changed + round * size, changed + round * (size + sizeof(float))};
}

CpChoice choose_cp_kind(const HeadShape& shape, const CpRanks& ranks) {
  if (shape.space_time && !ranks.hybrid) return {CpKind::all_to_all, ranks.cp};
  const int heads = most_ranks(ranks.cp, ranks.cp, [&](int some) {
    return heads_for(some, shape, ranks) && ranks.of_machine % (ranks.tp * some) == 0;
  });
  const CpChoice choice = choice_of(heads, ranks.cp), gather;
  const auto bytes = [&](const CpChoice& one) {
    const CpBytes sent = cp_bytes(one, shape, ranks, 2);
    return sent.forward + sent.backward;
  };
  return ranks.tokens <= kShortPack && bytes(gather) < bytes(choice) ? gather : choice;
}

CpChoice find_cp_kind(CpKind kind, int heads, const HeadShape& shape, const CpRanks& ranks) {
  if (kind == CpKind::automatic) return choose_cp_kind(shape, ranks);
  if (kind != CpKind::all_to_all_ring) return {kind, kind == CpKind::all_to_all ? ranks.cp : 1};
  const auto fits = [&](int some) { return heads_for(some, shape, ranks); };
  if (heads == 0) {
    heads = most_ranks(ranks.cp, ranks.cp - 1, [&](int some) {
      return fits(some) && ranks.of_machine % (ranks.tp * some) == 0;
    });
    if (heads == 1) heads = most_ranks(ranks.cp, ranks.cp - 1, fits);
    if (heads == 1)
      throw dist::LayoutRefused(
          vfm::format("parallel.cp={} is not split into ranks that share heads and a ring of these",
                      ranks.cp),
          vfm::format(": parallel.cp_kind={} can be",
                      heads_for(ranks.cp, shape, ranks) ? "all_to_all" : "ring"));
  }
  if (ranks.cp % heads != 0)
    throw dist::LayoutRefused(
        vfm::format("parallel.cp_heads={} does not divide parallel.cp={}", heads, ranks.cp),
        vfm::format(": {} does", most_ranks(ranks.cp, std::min(heads, ranks.cp), fits)));
  return choice_of(heads, ranks.cp);
}

dist::Layout settled_cp(dist::Layout layout, const HeadShape& shape, int of_machine,
                        std::int64_t tokens) {
  const CpChoice choice =
      layout.cp == 1 ? CpChoice{}
                     : find_cp_kind(layout.cp_kind, layout.cp_heads, shape,
                                    {layout.tp, layout.cp, of_machine, tokens, layout.hybrid});
  layout.cp_kind = choice.kind;
  layout.cp_heads = choice.kind == CpKind::all_to_all_ring ? choice.heads : 1;
  return layout;
}

}  // namespace vfm::nn
