// A pack of codes as the decoder's layers read it: who attends to whom, and which rows of the table
// stand for the tokens. Where ranks share the decoder, what a rank has of it. For this folder.
//
// Each rank of cp has two ranges of each sample's tokens, mirror images of each other, so that all
// have as many keys to see. It gathers the keys and values of all, and each range of queries sees
// those from the sample's beginning to its own end: rows that both see are there twice.
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

/// Who attends to whom with this rank's heads, of `ranks` ranks; no lengths yet.
ops::AttentionPack heads_of(const DecoderConfig& config, bool causal, int ranks = 1);

/// What the tokens of a pack are to give, of the targets of its codes: without a start token those
/// of the codes after theirs, and -1, none, for a sample's last.
std::vector<std::int32_t> token_targets(const DecoderConfig& config, const CodeBatch& batch,
                                        std::span<const std::int32_t> targets);

struct DecoderPack {
  DecoderPack(const DecoderConfig& config, const CodeBatch& batch, const nn::NetworkLayout& layout,
              Device device);

  std::vector<std::int32_t> known;  ///< [S]: row of this rank's part of the table, -1: of another's
  std::optional<nn::TokenShard> shard;  ///< where ranks share the pack
  ops::AttentionPack self, cross;   ///< of this rank's heads and queries; ready on the device
  nn::TokenExchanges exchanges;

 private:
  void share(const DecoderConfig& config, const nn::NetworkLayout& layout, Device device);
};

/// What the loss of a pack needs to know of this rank.
struct LossShare {
  LossShare(const DecoderConfig& config, const CodeBatch& batch, const nn::NetworkLayout& layout);

  std::vector<ops::RowRange> rows;    ///< of the pack: those that have logits here
  ops::RowRange own;                  ///< of these, the ones whose loss is this rank's
  std::vector<std::int64_t> lengths;  ///< own ones of each sample
  ops::VocabularyShare vocabulary;
};

}  // namespace vfm::models
