// What ranks of context parallelism exchange for self-attention, what that costs, and which to
// take.
//
//   gather           the keys and values of all tokens come to every rank
//   all_to_all       queries, keys and values change places with heads: all tokens of some heads
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
#include <string_view>

namespace vfm::nn {

/// The heads of a network's self-attention.
struct HeadShape {
  int heads = 0, key_heads = 0;  ///< of queries; of keys and values
  int head_dim = 0;
  /// Some attentions stay within frames or within pixels, which ranks need whole.
  bool space_time = false;

  /// The heads that one of `tp` ranks has.
  HeadShape share(int tp) const { return {heads / tp, key_heads / tp, head_dim, space_time}; }
};

enum class CpKind { gather, all_to_all, ring, all_to_all_ring };
/// "gather", "all_to_all", "ring", "all_to_all+ring"; parse throws Error{usage} for anything else.
std::string_view cp_kind_name(CpKind kind);
CpKind parse_cp_kind(std::string_view name);

/// What a choice depends on; the same on all ranks.
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

/// Bytes that a rank sends for one self-attention of `element` bytes, with even parts.
struct CpBytes {
  double forward = 0, backward = 0;
};
CpBytes cp_bytes(const CpChoice& choice, const HeadShape& shape, const CpRanks& ranks,
                 std::size_t element);

/// Packs up to this length may have the keys and values of all tokens on every rank.
inline constexpr std::int64_t kShortPack = 8192;

/// The heads are dealt out to as many ranks as have some of queries and of keys each and sit on
/// one machine; between machines, or where heads do not suffice, keys go round. So it is all_to_all
/// on one machine with heads for all, ring where not two ranks can share heads, else both. For a
/// pack of kShortPack tokens at most it is gather if that sends fewer bytes, forward and back: as
/// with few heads of keys. A network with attention in frames and pixels
/// has all_to_all for all three, or a hybrid, where the choice is for full attention alone.
CpChoice choose_cp_kind(const HeadShape& shape, const CpRanks& ranks);

/// The kind of this name, or for "auto" the chosen one. `heads`: of "all_to_all+ring" the ranks
/// that exchange tokens for heads; 0: as choose_cp_kind has it, or if that is no or all ranks, the
/// most that leave a ring. Throws Error{usage} for a number of heads' ranks that cannot be.
CpChoice find_cp_kind(std::string_view name, int heads, const HeadShape& shape,
                      const CpRanks& ranks);

}  // namespace vfm::nn
