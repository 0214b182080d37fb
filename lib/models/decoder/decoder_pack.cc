// SPDX-License-Identifier: Apache-2.0
#include "models/decoder/decoder_pack.h"

#include <algorithm>

#include "dist/layout.h"
#include "nn/collectives.h"

namespace vfm::models {
namespace {

std::vector<std::int64_t> lengths_of(const CodeBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (const CodeSample& sample : batch.samples)
    lengths.push_back(sample.codes());
  return lengths;
}

// What tokens read: the code before the one that they write, or the start; without a start their
// own one.
std::vector<std::int32_t> known_codes(const DecoderConfig& config, const CodeBatch& batch) {
  if (!config.start_token) return batch.codes;
  std::vector<std::int32_t> known;
  for (const CodeSample& sample : batch.samples) {
    const auto begin = static_cast<std::ptrdiff_t>(known.size());
    known.push_back(config.vocabulary);
    known.insert(known.end(), batch.codes.begin() + begin,
                 batch.codes.begin() + begin + sample.codes() - 1);
  }
  return known;
}

template <class T>
std::vector<T> taken(std::span<const T> all, std::span<const ops::RowRange> ranges) {
  std::vector<T> some;
  for (const ops::RowRange& range : ranges)
    some.insert(some.end(), all.begin() + range.begin, all.begin() + range.end);
  return some;
}

// Row numbers where the cp parts stand one after the other, of the pack's rows in their own order.
std::vector<std::int32_t> places(const nn::TokenShard& shard) {
  const Tensor& there = shard.order.there();
  return {there.data<std::int32_t>(), there.data<std::int32_t>() + there.elements()};
}

// At least one of each thing that ranks of tp share out.
void check_share(std::int64_t count, const char* what, const nn::NetworkLayout& layout) {
  if (count < layout.tp_size())
    throw dist::LayoutRefused(
        vfm::format("{} of {} is not shared by {} ranks", what, count, layout.tp_size()),
        vfm::format(": the nearest is parallel.tp={}", count));
}

}  // namespace

void check_layout(const DecoderConfig& config, const nn::NetworkLayout& layout) {
  if (layout.alone()) return;
  if (layout.cp_size() > 1 && layout.cp_kind != nn::CpKind::gather && !layout.deals_heads())
    throw dist::LayoutRefused(
        "the autoregressive model's ranks of cp gather keys, or exchange tokens for heads",
        ": parallel.cp_kind=gather and all_to_all can be");
  layout.check_heads(config.heads());
  check_share(config.vocabulary, "a vocabulary", layout);
  check_share(config.hidden(), "a hidden width", layout);
  if (layout.by_outputs) check_share(config.width(), "a width", layout);
}

ops::AttentionPack heads_of(const DecoderConfig& config, bool causal, int ranks) {
  ops::AttentionPack pack;
  pack.heads = config.num_attention_heads / ranks;
  pack.key_heads = config.key_value_heads() / ranks;
  pack.head_dim = config.attention_head_dim;
  pack.causal = causal;
  return pack;
}

void to_own_rows(std::vector<std::int32_t>& rows, const DecoderConfig& config,
                 const nn::NetworkLayout& layout) {
  const nn::Cut cut = layout.cut(0);
  const std::int64_t all = config.table_rows(), first = nn::share(all, cut.rank, cut.ranks),
                     end = nn::share(all, cut.rank + 1, cut.ranks);
  for (std::int32_t& row : rows)
    row = row >= first && row < end ? static_cast<std::int32_t>(row - first) : -1;
}

std::vector<std::int32_t> token_targets(const DecoderConfig& config, const CodeBatch& batch,
                                        std::span<const std::int32_t> targets) {
  std::vector<std::int32_t> of_tokens(targets.begin(), targets.end());
  if (config.start_token) return of_tokens;
  auto begin = of_tokens.begin();
  for (const CodeSample& sample : batch.samples) {
    const auto end = begin + static_cast<std::ptrdiff_t>(sample.codes());
    std::shift_left(begin, end, 1);
    *(end - 1) = -1;
    begin = end;
  }
  return of_tokens;
}

DecoderPack::DecoderPack(const DecoderConfig& config, const CodeBatch& batch,
                         const nn::NetworkLayout& layout, Device device)
    : known(known_codes(config, batch)),
      self(heads_of(config, true, layout.heads_ranks())),
      cross(heads_of(config, false, layout.tp_size())) {
  self.query_lengths = self.key_lengths = cross.query_lengths = lengths_of(batch);
  for (const CodeSample& sample : batch.samples)
    cross.key_lengths.push_back(sample.text_tokens);
  if (!layout.alone()) share(config, layout, device);
  ops::prepare(self, device);
  ops::prepare(cross, device);
}

void DecoderPack::share(const DecoderConfig& config, const nn::NetworkLayout& layout,
                        Device device) {
  const std::vector<std::int64_t> lengths = self.key_lengths;
  // Only the exchange of tokens for heads orders rows on the device.
  const nn::TokenShard& s =
      shard.emplace(lengths, layout, layout.deals_heads() ? device : Device::cpu, true);
  known = taken<std::int32_t>(known, s.sequence);
  to_own_rows(known, config, layout);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    cross.query_lengths[i] = s.sequence[2 * i].count() + s.sequence[2 * i + 1].count();
  if (layout.tp_size() > 1) {
    exchanges.gather = nn::gather_rows(*layout.tp, s.tp_rows, layout.tp_chunks);
    exchanges.sum = nn::sum_rows(*layout.tp, s.tp_rows, layout.tp_chunks);
  }
  if (layout.cp_size() == 1) return;
  const std::int64_t width = config.heads_width() / layout.tp_size();
  const std::int64_t keys_width =
      std::int64_t{config.key_value_heads()} * config.attention_head_dim / layout.tp_size();
  if (layout.deals_heads()) {
    exchanges.to_heads =
        nn::rows_to_columns(*layout.cp, s.cp_rows, {width, keys_width, keys_width}, s.order);
    exchanges.to_tokens = nn::columns_to_rows(*layout.cp, s.cp_rows, {width}, s.order);
    return;
  }
  self.query_lengths.clear();
  self.key_lengths.clear();
  const std::vector<std::int32_t> place = places(s);
  std::vector<std::int32_t> seen;
  std::int64_t begin = 0;  // of the sample
  for (std::size_t i = 0; i < s.sequence.size(); ++i) {
    const ops::RowRange& queries = s.sequence[i];
    if (queries.count() > 0) {
      self.query_lengths.push_back(queries.count());
      self.key_lengths.push_back(queries.end - begin);
      seen.insert(seen.end(), place.begin() + begin, place.begin() + queries.end);
    }
    if (i % 2 == 1) begin += lengths[i / 2];
  }
  exchanges.keys =
      nn::gather_columns(*layout.cp, s.cp_rows, {width, 2 * keys_width, width + 2 * keys_width},
                         ops::RowChoice(seen, std::ssize(place), device));
}

LossShare::LossShare(const DecoderConfig& config, const CodeBatch& batch,
                     const nn::NetworkLayout& layout)
    : lengths(lengths_of(batch)) {
  if (layout.alone()) {
    own.end = static_cast<std::int64_t>(batch.codes.size());
    rows = {own};
    return;
  }
  const nn::TokenShard shard(lengths, layout, Device::cpu, true);
  rows = shard.sequence;
  const std::int64_t here = ops::row_count(rows);
  own = {nn::share(here, layout.tp_rank(), layout.tp_size()),
         nn::share(here, layout.tp_rank() + 1, layout.tp_size())};
  for (std::size_t i = 0; i < lengths.size(); ++i)
    lengths[i] = shard.own[2 * i].count() + shard.own[2 * i + 1].count();
  if (layout.tp_size() == 1) return;
  vocabulary.first = nn::share(config.vocabulary, layout.tp_rank(), layout.tp_size());
  vocabulary.of = config.vocabulary;
  vocabulary.gather = nn::gather_rows(
      *layout.tp, std::vector<std::int64_t>(static_cast<std::size_t>(layout.tp_size()), here));
}

}  // namespace vfm::models
