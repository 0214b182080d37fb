// SPDX-License-Identifier: Apache-2.0
#include "models/dit/network_cost.h"

#include <deque>
#include <utility>

#include "models/dit/pipeline_stages.h"
#include "tensor/meta.h"

namespace vfm::models {
namespace {

/// The batch without values, of networks that are on Device::meta.
NetworkBatch blank_batch(const NetworkConfig& config, const std::vector<NetworkSample>& samples) {
  NetworkBatch batch;
  std::int64_t values = 0, text_rows = 0;
  for (const NetworkSample& sample : samples) {
    values += std::int64_t{config.in_channels} * sample.frames * sample.height * sample.width;
    text_rows += sample.text_tokens;
  }
  batch.samples = samples;
  batch.latents = Tensor({values}, DType::f32, Device::meta);
  batch.text = Tensor({text_rows, config.text_embed_dim}, DType::f32, Device::meta);
  return batch;
}

}  // namespace

PartCost forward_cost(const NetworkConfig& config,
                      const std::vector<std::vector<nn::AdapterShape>>& adapters,
                      const std::vector<NetworkSample>& samples, DType compute, Fp8Parts fp8,
                      Device device, const nn::NetworkLayout& layout, dist::Traffic* traffic) {
  const MetaAccount account(device);
  const auto network = make_network(config, 0, compute, Device::meta, false, layout);
  for (const std::vector<nn::AdapterShape>& set : adapters)
    network->attach(set, false);
  if (fp8.any()) network->set_inference_fp8(fp8);
  if (layout.quantized) network->quantize();
  PartCost cost;
  cost.parameters = nn::element_count(nn::states_of(network->parameters())) +
                    nn::element_count(network->adapters());
  const std::size_t weights = account.memory().current;
  ops::Tape silent(false);
  // What the allocator keeps is what it is from the second time on.
  KernelCalls before;
  for (int i = 0; i < 2; ++i) {
    before = account.calls();
    if (traffic != nullptr) traffic->reset();
    network->forward(silent, blank_batch(config, samples));
  }
  cost.take(account, weights);
  cost.flops /= 2;
  add_calls(cost.calls, before, -1);
  return cost;
}

PartCost writing_cost(const DecoderConfig& config,
                      const std::vector<std::vector<nn::AdapterShape>>& adapters,
                      const CodeSample& sample, DType compute, Device device,
                      const nn::NetworkLayout& layout, dist::Traffic* traffic) {
  const nn::NetworkLayout shared = writing_layout(config, layout);
  const MetaAccount account(device);
  CausalDecoder decoder(config, 0, compute, Device::meta, false, shared);
  for (const std::vector<nn::AdapterShape>& set : adapters)
    decoder.attach(set, false);
  PartCost cost;
  cost.parameters = nn::element_count(decoder.parameters()) + nn::element_count(decoder.adapters());
  const std::size_t weights = account.memory().current;
  Tensor text;
  if (config.text_embed_dim > 0)
    text = Tensor({sample.text_tokens, config.text_embed_dim}, DType::f32, Device::meta);
  CodeWriter writer(decoder, sample, text);
  PartCost work;  // of the text, and of half of the first code and of the last, for each code
  const auto all = [&] {
    return PartCost{.flops = account.work().flops, .calls = account.calls()};
  };
  work.add_work(all());
  std::deque<CodeWriter> others;
  for (int i = 1; i < shared.pp_size(); ++i)
    others.emplace_back(decoder, sample, text);
  if (!config.start_token) writer.write(0);  // given
  const std::int64_t tokens = sample.codes() - writer.written();
  // Attention alone is not the same for each code: it grows evenly.
  const auto add_half = [&] {
    const PartCost before = all();
    if (traffic != nullptr) traffic->reset();
    writer.logits();
    work.add_work(all(), static_cast<double>(tokens) / 2);
    work.add_work(before, -static_cast<double>(tokens) / 2);
  };
  if (tokens > 0) add_half();
  while (writer.written() + 1 < sample.codes())
    writer.write(0);
  if (tokens > 0) add_half();
  cost.take(account, weights);
  cost.flops = work.flops;
  cost.calls = std::move(work.calls);
  return cost;
}

}  // namespace vfm::models
