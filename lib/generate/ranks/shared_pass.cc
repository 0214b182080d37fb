// SPDX-License-Identifier: Apache-2.0
#include "generate/ranks/shared_pass.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "models/link_time.h"

namespace vfm::generate {
namespace {

// Judged: what the host's memory sends to another process of the machine, by MPI.
constexpr double kHostMessages = 7e9;

double seconds_with(const std::vector<models::TimeLine>& lines, std::string_view beginning) {
  double sum = 0;
  for (const models::TimeLine& line : lines)
    if (line.name.starts_with(beginning)) sum += line.seconds;
  return sum;
}

/// What ranks exchange in a pass, by sort.
class Exchanges {
 public:
  Exchanges(const models::Gpu& gpu, const ClipRanks& ranks) : gpu_(gpu), ranks_(ranks) {}

  /// Adds what the world's groups sent.
  void count(const dist::Traffic& traffic);
  void add(std::string_view name, double seconds, double calls, double bytes);
  double& seconds_of(std::string_view name) { return line(name).seconds; }
  void add_batch(double bytes);
  void add_half(double bytes);
  std::vector<models::TimeLine> take() { return std::move(lines_); }

 private:
  const dist::Group& group_of(std::string_view axis) const;
  models::GroupOnNodes on_nodes(const dist::Group& group) const;
  models::TimeLine& line(std::string_view name);

  const models::Gpu& gpu_;
  const ClipRanks& ranks_;
  std::vector<models::TimeLine> lines_;
};

models::TimeLine& Exchanges::line(std::string_view name) {
  auto found = std::ranges::find(lines_, name, &models::TimeLine::name);
  if (found == lines_.end()) found = lines_.insert(found, {name});
  return *found;
}

void Exchanges::add(std::string_view name, double seconds, double calls, double bytes) {
  models::TimeLine& one = line(name);
  one.seconds += seconds, one.calls += calls, one.bytes += bytes;
}

const dist::Group& Exchanges::group_of(std::string_view axis) const {
  const nn::NetworkLayout& network = ranks_.network();
  for (const dist::Group* const group : {network.tp, network.cp, network.cp_heads, network.cp_ring,
                                         network.pp, static_cast<dist::Group*>(&ranks_.half())})
    if (group != nullptr && group->axis() == axis) return *group;
  return ranks_.clip();  // FP8's scales, and shards
}

/// Of it and of those along the same axis.
models::GroupOnNodes Exchanges::on_nodes(const dist::Group& group) const {
  return models::worst_group(group.ranks(), ranks_.world().size(), gpu_.per_node);
}

void Exchanges::count(const dist::Traffic& traffic) {
  for (const std::string& axis : traffic.axes())
    for (std::size_t i = 0; i < dist::kOperations; ++i) {
      const auto operation = static_cast<dist::Operation>(i);
      const dist::Traffic::Count sent = traffic.of(axis, operation);
      if (sent.calls == 0) continue;
      const std::string_view name = axis == "clip"                           ? "scales of FP8"
                                    : axis == "shard"                        ? "shards"
                                    : axis == "tp"                           ? "tp"
                                    : axis == "pp"                           ? "pp"
                                    : operation == dist::Operation::exchange ? "ring"
                                    : axis.starts_with("cp")                 ? "cp"
                                                                             : "output";
      const auto calls = static_cast<double>(sent.calls), bytes = static_cast<double>(sent.bytes);
      add(name, models::link_seconds(gpu_, operation, on_nodes(group_of(axis)), calls, bytes),
          calls, bytes);
    }
}

/// From the rank that leads to all others, which pass it on.
void Exchanges::add_batch(double bytes) {
  const models::GroupOnNodes clip = on_nodes(ranks_.clip());
  const bool crosses = clip.on_node < clip.ranks;
  const double rate = crosses ? std::min(kHostMessages, gpu_.across.bandwidth) : kHostMessages;
  const double latency = (crosses ? gpu_.across : gpu_.inside).latency;
  add("batch", bytes / rate + latency * std::log2(clip.ranks), 1, bytes);
}

/// The unguided half's output, from host to host.
void Exchanges::add_half(double bytes) {
  if (ranks_.halves().size() > 1) add("output", bytes / kHostMessages, 1, bytes);
}

std::vector<models::TimeLine> exchange_lines(const SharedPassWork& work,
                                             const models::PartCost& cost, std::int64_t own,
                                             const dist::Layout& parallel, const ClipRanks& ranks,
                                             const models::Gpu& gpu) {
  const models::NetworkSample& s = work.sample;
  const double places = static_cast<double>(s.frames) * s.height * s.width, f32 = sizeof(float);
  const Tensor output({own * work.network.out_channels * s.frames * s.height * s.width}, DType::f32,
                      Device::meta);
  if (ranks.half().size() > 1) ranks.half().all_reduce(output).wait();
  Exchanges exchanges(gpu, ranks);
  exchanges.count(ranks.world().traffic());
  const std::vector<models::TimeLine> computed = models::predict(gpu, cost.calls);
  exchanges.seconds_of("tp") *= 1 - gpu.tp_hidden;
  double& ring = exchanges.seconds_of("ring");
  ring = std::max(ring / std::max(2, parallel.cp), ring - seconds_with(computed, "attention"));
  double& shards = exchanges.seconds_of("shards");
  shards = std::max(shards / std::max(1, work.network.num_layers),
                    shards - models::sum_of("", computed).seconds);
  exchanges.add_batch(f32 * static_cast<double>(work.samples) *
                      (work.network.in_channels * places +
                       static_cast<double>(s.text_tokens) * work.network.text_embed_dim));
  exchanges.add_half(static_cast<double>(output.bytes()));
  std::vector<models::TimeLine> lines = exchanges.take();
  std::erase_if(lines, [](const models::TimeLine& line) { return line.calls == 0; });
  return lines;
}

}  // namespace

void SharedPass::repeat(double times) {
  cost.repeat(times);
  for (models::TimeLine& line : exchanges)
    line.seconds *= times, line.calls *= times, line.bytes *= times;
}

void SharedPass::add(const SharedPass& more, double times) {
  cost.add_work(more.cost, times);
  for (const models::TimeLine& other : more.exchanges) {
    auto line = std::ranges::find(exchanges, other.name, &models::TimeLine::name);
    if (line == exchanges.end()) line = exchanges.insert(line, {other.name});
    line->seconds += times * other.seconds;
    line->calls += times * other.calls;
    line->bytes += times * other.bytes;
  }
}

SharedPass shared_writing(const SharedWritingWork& work, const dist::Layout& parallel,
                          const models::Gpu* gpu) {
  SharedPass most;
  const auto bytes = [](const SharedPass& of) { return of.cost.weight_bytes + of.cost.held_bytes; };
  for (int stage = 0; stage < parallel.pp; ++stage) {
    const auto world = dist::counted_world(stage * parallel.tp, parallel.sharers());
    const ClipRanks ranks(*world, parallel);
    SharedPass pass;
    pass.cost = models::writing_cost(work.decoder, work.adapters, work.sample, work.compute,
                                     work.device, ranks.network(), &world->traffic());
    if (gpu != nullptr) {
      Exchanges exchanges(*gpu, ranks);
      exchanges.count(world->traffic());
      pass.exchanges = exchanges.take();
      for (models::TimeLine& line : pass.exchanges)
        for (double* const of_code : {&line.seconds, &line.calls, &line.bytes})
          *of_code *= static_cast<double>(work.sample.codes());
    }
    if (stage == 0 || bytes(pass) > bytes(most)) most = std::move(pass);
  }
  return most;
}

SharedPass shared_pass(const SharedPassWork& work, const dist::Layout& parallel,
                       const models::Gpu* gpu) {
  const std::unique_ptr<dist::World> world = dist::counted_world(0, parallel.sharers());
  const ClipRanks ranks(*world, parallel);
  const std::int64_t own = std::max<std::int64_t>(1, work.samples / parallel.cfg);
  SharedPass pass;
  nn::NetworkLayout layout = ranks.network();
  layout.quantized = work.quantize;
  pass.cost = models::forward_cost(work.network, work.adapters,
                                   std::vector(static_cast<std::size_t>(own), work.sample),
                                   work.compute, work.fp8, work.device, layout, &world->traffic());
  if (gpu != nullptr && !parallel.alone())
    pass.exchanges = exchange_lines(work, pass.cost, own, parallel, ranks, *gpu);
  return pass;
}

}  // namespace vfm::generate
