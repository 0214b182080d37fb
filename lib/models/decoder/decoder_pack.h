// A pack of codes as the decoder's layers read it: which tokens attend to which, and which rows of
// the table stand for the tokens. If ranks share the decoder, also this rank's part of the pack.
// For this folder.
//
// Each rank of cp has two ranges of each sample's tokens, mirror images of each other, so that all
// ranks see equally many keys. A rank gathers the keys and values of all ranks. Each range of
// queries sees the keys from the sample's beginning to the range's end. Keys that both ranges see
// are there twice.
// Shape letters: S tokens of this cp part, V vocabulary.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/decoder/decoder.h"
#include "nn/token_shard.h"
#include "ops/attention/attention.h"
#include "ops/loss/cross_entropy.h"

namespace vfm::models {

/// Returns a pack without lengths, with the heads that one of `ranks` ranks has.
ops::AttentionPack heads_of(const DecoderConfig& config, bool causal, int ranks = 1);

/// Turns rows of the table into rows of this rank's part of it; -1: it is elsewhere.
void to_own_rows(std::vector<std::int32_t>& rows, const DecoderConfig& config,
                 const nn::NetworkLayout& layout);

/// Returns the target of each token of a pack, from the targets of the pack's codes. Without a
/// start token, a token has the target of the next code, and a sample's last token has -1, none.
std::vector<std::int32_t> token_targets(const DecoderConfig& config, const CodeBatch& batch,
                                        std::span<const std::int32_t> targets);

struct DecoderPack {
  DecoderPack(const DecoderConfig& config, const CodeBatch& batch, const nn::NetworkLayout& layout,
              Device device);

  std::vector<std::int32_t> known;  ///< [S]: row in this rank's part of the table; -1: elsewhere
  std::optional<nn::TokenShard> shard;  ///< only if ranks share the pack
  ops::AttentionPack self, cross;       ///< for this rank's heads and queries; ready on the device
  nn::TokenExchanges exchanges;

 private:
  void share(const DecoderConfig& config, const nn::NetworkLayout& layout, Device device);
};

/// This rank's share of the loss of a pack.
struct LossShare {
  LossShare(const DecoderConfig& config, const CodeBatch& batch, const nn::NetworkLayout& layout);

  std::vector<ops::RowRange> rows;    ///< rows of the pack that have logits on this rank
  ops::RowRange own;                  ///< range within these rows whose loss is this rank's
  std::vector<std::int64_t> lengths;  ///< number of own rows of each sample
  ops::VocabularyShare vocabulary;
};

}  // namespace vfm::models
