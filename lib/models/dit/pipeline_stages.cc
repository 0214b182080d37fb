// SPDX-License-Identifier: Apache-2.0
#include "models/dit/pipeline_stages.h"

#include <algorithm>
#include <tuple>

#include "base/counted.h"
#include "base/format.h"
#include "dist/mesh.h"
#include "nn/staged_forward.h"
#include "tensor/meta.h"

namespace vfm::models {

namespace {

// Of a network of one block on Device::meta: each part by itself, less what all begin with.
template <class Network, class Samples>
PartWork work_of_parts(const Network& network, const Samples& batch,
                       const std::vector<Shape>& shapes) {
  const auto work_of = [&](const auto& part) {
    const MetaAccount account(Device::cpu);
    ops::Tape tape;
    nn::Streams in;
    for (const Shape& shape : shapes) {
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
  work.embed = work_of([](Part& part, const nn::Streams&) { return part.embed(); });
  work.block = work_of([](Part& part, const nn::Streams& in) { return part.blocks(in, 0, 1); });
  work.head = work_of([](Part& part, const nn::Streams& in) { return nn::Streams{part.head(in)}; });
  return work;
}

}  // namespace

PartWork part_work(const NetworkConfig& whole, const std::vector<NetworkSample>& samples,
                   DType compute) {
  NetworkConfig config = whole;
  config.num_layers = 1;
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
  return work_of_parts(*network, batch, network->stream_shapes(batch, 0));
}

PartWork part_work(const DecoderConfig& whole, const CodeSample& sample, DType compute) {
  DecoderConfig config = whole;
  config.num_layers = 1;
  CodeBatch batch;
  batch.samples = {sample};
  batch.codes.resize(static_cast<std::size_t>(sample.codes()));
  if (config.text_embed_dim > 0)
    batch.text = Tensor({sample.text_tokens, config.text_embed_dim}, DType::f32, Device::meta);
  const CausalDecoder decoder(config, 0, compute, Device::meta);
  return work_of_parts(decoder, batch, {decoder.stream_shape(batch)});
}

std::vector<int> balance_stages(const PartWork& work, int blocks, int pp, int vpp) {
  const auto chunks = static_cast<std::size_t>(pp) * static_cast<std::size_t>(vpp);
  if (static_cast<std::size_t>(std::max(blocks, 0)) < chunks)
    throw dist::LayoutRefused(
        vfm::format("{} {} not shared by {} stages of a pipeline with {} each",
                    counted(blocks, "block"), is_or_are(blocks), pp, counted(vpp, "chunk")),
        vfm::format(": the nearest is parallel.pp={} parallel.vpp=1", std::min(blocks, pp)));
  std::vector<int> stages(chunks, 1);
  const auto rank_of = [&](std::size_t chunk) { return chunk % static_cast<std::size_t>(pp); };
  std::vector<double> of_chunk(chunks, work.block), of_rank(static_cast<std::size_t>(pp), 0);
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
    of_chunk[least] += work.block;
    of_rank[rank_of(least)] += work.block;
  }
  return stages;
}

}  // namespace vfm::models
