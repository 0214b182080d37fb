// SPDX-License-Identifier: Apache-2.0
#include "models/dit/pipeline_stages.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "base/format.h"
#include "dist/layout.h"
#include "models/dit/architecture.h"
#include "nn/staged_forward.h"
#include "tensor/meta.h"

namespace vfm::models {

namespace {

// Of a network on Device::meta: each part by itself, less what all begin with; of each kind of
// block the first. `shapes` are those of the tensors before a block.
template <class Network, class Samples>
PartWork work_of_parts(const Network& network, const Samples& batch, const std::vector<int>& kinds,
                       const std::function<std::vector<Shape>(std::size_t)>& shapes) {
  const auto work_of = [&](std::size_t block, const auto& part) {
    const MetaAccount account(Device::cpu);
    ops::Tape tape;
    nn::Streams in;
    for (const Shape& shape : shapes(block)) {
      in.emplace_back(shape, DType::f32, Device::meta);
      tape.watch(in.back(), Tensor(shape, DType::f32, Device::meta));
    }
    const auto stages = network.stages(tape, batch);
    const double before = account.work().flops;
    const nn::Streams out = part(*stages, in);
    nn::Streams gradients;
    for (const Tensor& one : out)
      gradients.emplace_back(one.shape(), DType::f32, Device::meta);
    nn::backward(tape, out, gradients);
    return account.work().flops - before;
  };
  using Part = nn::StagedForward;
  PartWork work;
  work.embed = work_of(0, [](Part& part, const nn::Streams&) { return part.embed(); });
  std::map<int, double> known;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto [found, fresh] = known.try_emplace(kinds[i]);
    if (fresh)
      found->second =
          work_of(i, [i](Part& part, const nn::Streams& in) { return part.blocks(in, i, i + 1); });
    work.blocks.push_back(found->second);
  }
  work.head = work_of(kinds.size(),
                      [](Part& part, const nn::Streams& in) { return nn::Streams{part.head(in)}; });
  return work;
}

// The chunks of blocks that are not alike, by dynamic programming.
class EvenChunks {
 public:
  EvenChunks(const PartWork& work, std::size_t chunks) : work_(work), chunks_(chunks), sums_{0} {
    for (const double block : work.blocks)
      sums_.push_back(sums_.back() + block);
  }

  std::vector<int> cut() const {
    constexpr double kRounding = 1e-9;
    const double most =
        best(std::numeric_limits<double>::infinity(), [](double so_far, double chunk) {
          return std::max(so_far, chunk);
        }).first;
    return best(most * (1 + kRounding),
                [](double so_far, double chunk) { return so_far + chunk * chunk; })
        .second;
  }

 private:
  double work_of(std::size_t chunk, std::size_t begin, std::size_t end) const {
    return sums_[end] - sums_[begin] + (chunk == 0 ? work_.embed : 0) +
           (chunk + 1 == chunks_ ? work_.head : 0);
  }
  // The least of `joined` over all chunks, none of which has more than `limit`; and their blocks.
  // Of equals the last chunks have most.
  std::pair<double, std::vector<int>> best(
      double limit, const std::function<double(double, double)>& joined) const {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    const std::size_t blocks = work_.blocks.size();
    std::vector<double> before(blocks + 1, kNone);
    before[0] = 0;
    std::vector<std::vector<std::size_t>> begins;  // of each chunk, by its end
    for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
      std::vector<double> after(blocks + 1, kNone);
      std::vector<std::size_t>& of_chunk = begins.emplace_back(blocks + 1);
      for (std::size_t end = chunk + 1; end <= blocks; ++end)
        for (std::size_t begin = chunk; begin < end; ++begin) {
          const double work = work_of(chunk, begin, end);
          if (work > limit) continue;
          if (const double sum = joined(before[begin], work); sum < after[end])
            after[end] = sum, of_chunk[end] = begin;
        }
      before = std::move(after);
    }
    std::vector<int> counts(chunks_);
    for (std::size_t chunk = chunks_, end = blocks; chunk-- > 0; end = begins[chunk][end])
      counts[chunk] = static_cast<int>(end - begins[chunk][end]);
    return {before[blocks], counts};
  }

  const PartWork& work_;
  const std::size_t chunks_;
  std::vector<double> sums_;
};

}  // namespace

PartWork part_work(const NetworkConfig& config, const std::vector<NetworkSample>& samples,
                   DType compute) {
  const MetaAccount apart(Device::cpu);  // the whole network counts in no other account
  NetworkBatch batch;
  std::int64_t values = 0, text_rows = 0;
  for (const NetworkSample& sample : samples) {
    values += std::int64_t{config.in_channels} * sample.frames * sample.height * sample.width;
    text_rows += sample.text_tokens;
  }
  batch.samples = samples;
  batch.latents = Tensor({values}, DType::f32, Device::meta);
  batch.text = Tensor({text_rows, config.text_embed_dim}, DType::f32, Device::meta);
  const auto network = make_network(config, 0, compute, Device::meta);
  PartWork work = work_of_parts(*network, batch, block_kinds(config), [&](std::size_t block) {
    return network->stream_shapes(batch, block);
  });
  work.weights.resize(work.blocks.size());
  for (const nn::Parameter* parameter : network->parameters())
    if (const auto block = block_of(parameter->name))
      work.weights.at(static_cast<std::size_t>(*block)) +=
          static_cast<double>(element_count(parameter->shape()));
  return work;
}

PartWork part_work(const DecoderConfig& config, const CodeSample& sample, DType compute) {
  const MetaAccount apart(Device::cpu);
  CodeBatch batch;
  batch.samples = {sample};
  batch.codes.resize(static_cast<std::size_t>(sample.codes()));
  if (config.text_embed_dim > 0)
    batch.text = Tensor({sample.text_tokens, config.text_embed_dim}, DType::f32, Device::meta);
  const CausalDecoder decoder(config, 0, compute, Device::meta);
  const auto layers = static_cast<std::size_t>(config.num_layers);
  PartWork work = work_of_parts(decoder, batch, std::vector<int>(layers), [&](std::size_t) {
    return std::vector<Shape>{decoder.stream_shape(batch)};
  });
  work.weights.assign(layers, 1);  // alike
  return work;
}

std::vector<int> balance_stages(const PartWork& work, int pp, int vpp) {
  const auto chunks = static_cast<std::size_t>(pp) * static_cast<std::size_t>(vpp);
  const int blocks = static_cast<int>(work.blocks.size());
  if (work.blocks.size() < chunks)
    throw dist::LayoutRefused(
        vfm::format("{} {} not shared by {} stages of a pipeline with {} each",
                    counted(blocks, "block"), is_or_are(blocks), pp, counted(vpp, "chunk")),
        vfm::format(": the nearest is parallel.pp={} parallel.vpp=1", std::min(blocks, pp)));
  const double block = work.blocks.front();
  if (std::ranges::any_of(work.blocks, [block](double other) { return other != block; }))
    return EvenChunks(work, chunks).cut();
  std::vector<int> stages(chunks, 1);
  const auto rank_of = [&](std::size_t chunk) { return chunk % static_cast<std::size_t>(pp); };
  std::vector<double> of_chunk(chunks, block), of_rank(static_cast<std::size_t>(pp), 0);
  of_chunk.front() += work.embed;
  of_chunk.back() += work.head;
  for (std::size_t i = 0; i < chunks; ++i)
    of_rank[rank_of(i)] += of_chunk[i];
  for (int left = blocks - static_cast<int>(chunks); left > 0; --left) {
    std::size_t least = 0;
    for (std::size_t i = 1; i < chunks; ++i)
      if (std::tuple(of_chunk[i], of_rank[rank_of(i)]) <=
          std::tuple(of_chunk[least], of_rank[rank_of(least)]))
        least = i;
    ++stages[least];
    of_chunk[least] += block;
    of_rank[rank_of(least)] += block;
  }
  return stages;
}

nn::NetworkLayout writing_layout(const DecoderConfig& config, nn::NetworkLayout layout) {
  layout.by_outputs = true;
  if (layout.pp_size() > 1)  // of one code, for which the weights are read
    layout.stages =
        balance_stages(part_work(config, CodeSample{1, 1, 1, 1}, DType::f32), layout.pp_size(), 1);
  return layout;
}

}  // namespace vfm::models
