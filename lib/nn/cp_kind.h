// The exchange between ranks of context parallelism for self-attention: its kinds, their costs, and
// the choice of one.
//
//   gather           the keys and values of all tokens come to every rank
//   all_to_all       ranks exchange tokens for heads: each gets all tokens of some heads
//   ring             keys and values go round, part by part, while a rank attends over them
//   all_to_all+ring  both: neighbours exchange tokens for heads, and between such groups keys and
//                    values go round
// Sources: Llama Team, "The Llama 3 herd of models" (2024), section 3.3.2, for the gathered keys;
// Jacobs et al., "DeepSpeed Ulysses" (2023), for the heads; Liu, Zaharia and Abbeel, "Ring
// attention with blockwise transformers for near-infinite context" (2023); Fang and Zhao, "USP: a
// unified sequence parallelism approach for long context generative AI" (2024), for both.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dist/layout.h"

namespace vfm::nn {

/// The heads of a network's self-attention.
struct HeadShape {
  int heads = 0, key_heads = 0;  ///< of queries; of keys and values
  int head_dim = 0;
  /// True if some attentions stay within frames or within pixels, so that a rank needs these whole.
  bool space_time = false;

  /// Returns the heads that one of `tp` ranks has.
  HeadShape share(int tp) const { return {heads / tp, key_heads / tp, head_dim, space_time}; }
};

using dist::CpKind;
/// In the order of CpKind: "auto", "gather", "all_to_all", "ring" and "all_to_all+ring".
std::span<const std::string_view> cp_kind_names();
std::string_view cp_kind_name(CpKind kind);
/// Throws Error{usage} for other names.
CpKind parse_cp_kind(std::string_view name);

/// The facts that a choice depends on. They are the same on all ranks.
struct CpRanks {
  int tp = 1, cp = 1;
  int of_machine = 1;       ///< ranks on one machine, which have neighbouring numbers
  std::int64_t tokens = 0;  ///< of a pack
  bool hybrid = false;      ///< the choice is for full attention alone
};

struct CpChoice {
  CpKind kind = CpKind::gather;
  int heads = 1;  ///< ranks of cp that exchange tokens for heads: all, some, or one
  bool operator==(const CpChoice&) const = default;
};

/// Bytes that a rank sends for one self-attention with elements of `element` bytes and even parts.
struct CpBytes {
  double forward = 0, backward = 0;
};
CpBytes cp_bytes(const CpChoice& choice, const HeadShape& shape, const CpRanks& ranks,
                 std::size_t element);

/// Packs up to this length may have the keys and values of all tokens on every rank.
inline constexpr std::int64_t kShortPack = 8192;

/// Returns the best choice. The heads are shared by as many ranks as can each have some heads of
/// queries and of keys and are on one machine. Between machines, or if there are too few heads,
/// keys go round. So the choice is all_to_all on one machine with heads for all ranks, ring if no
/// two ranks can share heads, else both. For a pack of at most kShortPack tokens it is gather if
/// gather sends fewer bytes in forward and backward together, as with few heads of keys. A network
/// with attention in frames and pixels has all_to_all for all three attentions, except in a hybrid,
/// where the choice is for full attention alone.
CpChoice choose_cp_kind(const HeadShape& shape, const CpRanks& ranks);

/// Returns the choice for ranks that asked for `kind`; `automatic` is choose_cp_kind(). For
/// all_to_all_ring, `heads` is the number of ranks that exchange tokens for heads. 0: the most
/// ranks, but not all, that can share heads, if possible on one machine. Throws Error{usage} for an
/// impossible number.
CpChoice find_cp_kind(CpKind kind, int heads, const HeadShape& shape, const CpRanks& ranks);

/// Returns the layout with nothing left open in cp: kind and heads as find_cp_kind() has them for a
/// pack of `tokens` tokens, with `of_machine` ranks on a machine. Without cp the kind is gather.
dist::Layout settled_cp(dist::Layout layout, const HeadShape& shape, int of_machine,
                        std::int64_t tokens);

}  // namespace vfm::nn
