// SPDX-License-Identifier: Apache-2.0
#include "tensor/graph_cache.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "tensor/device.h"

namespace vfm {
namespace {

constexpr int kTries = 3;                    // attention may have to see numbers other than zero
constexpr int kGiveUps = 3;                  // a new shape may need the memory of recordings
constexpr std::int64_t kIdle = 64;           // runs without use after which a graph makes room
constexpr std::size_t kMostShapes = 10'000;  // remembered

bool allowed = true;

std::set<GraphCache*>& caches() {
  static auto* const all = new std::set<GraphCache*>;
  return *all;
}

}  // namespace

// One that records nothing has nothing to give up, and may be made by any thread.
GraphCache::GraphCache(int most) : most_(allowed ? most : 0) {
  if (records()) caches().insert(this);
}

void GraphCache::allow(bool graphs) {
  allowed = graphs;
}

GraphCache::~GraphCache() {
  if (records()) caches().erase(this);
}

void GraphCache::Entry::clear() {
  graph.reset();
  inputs.clear();
  results.clear();
}

std::vector<Tensor> GraphCache::run(const std::string& shape, const std::vector<Tensor>& inputs,
                                    const Work& work) {
  if (most_ == 0) return work(inputs);
  ++runs_;
  if (entries_.size() > kMostShapes)
    std::erase_if(entries_, [](const auto& entry) { return entry.second.graph == nullptr; });
  Entry& entry = entries_[shape];
  if (entry.graph == nullptr && !record(entry, inputs, work)) return work(inputs);
  entry.last = runs_;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    copy(inputs[i], entry.inputs[i]);
  entry.graph->replay();
  ++replays_;
  std::vector<Tensor> results;
  for (const Tensor& result : std::vector<Tensor>(entry.results))  // clone() may give up the graph
    results.push_back(result.clone());
  return results;
}

/// False if the work is to be done plainly.
bool GraphCache::record(Entry& entry, const std::vector<Tensor>& inputs, const Work& work) {
  if (++entry.seen < 2 || entry.refused >= kTries || !make_room()) return false;
  std::vector<Tensor> fixed;
  const int given_up = given_up_;
  try {
    for (const Tensor& input : inputs)
      fixed.emplace_back(input.shape(), input.dtype(), input.device());
    if (given_up_ != given_up) return false;  // there was hardly memory for them
    entry.graph = std::make_unique<GpuGraph>([&] { entry.results = work(fixed); });
    entry.inputs = std::move(fixed);
    if (!std::exchange(logged_, true)) log_info("steps of shapes that repeat run as CUDA graphs");
    return true;
  } catch (const std::exception& error) {
    entry.clear();
    GpuGraph::release_memory();  // the work is done plainly now, and needs as much
    if (++entry.refused == kTries && !std::exchange(said_, true))
      log_info("some steps run without CUDA graphs: {}", error.what());
    return false;
  }
}

/// The graph that was not used for longest goes, if that is long.
bool GraphCache::make_room() {
  if (graphs() < most_) return true;
  Entry* oldest = nullptr;
  for (auto& [shape, entry] : entries_)
    if (entry.graph != nullptr && (oldest == nullptr || entry.last < oldest->last)) oldest = &entry;
  if (oldest == nullptr || runs_ - oldest->last < kIdle) return false;
  oldest->clear();
  return true;
}

int GraphCache::graphs() const {
  return static_cast<int>(std::ranges::count_if(
      entries_, [](const auto& entry) { return entry.second.graph != nullptr; }));
}

bool GraphCache::give_up() {
  if (graphs() == 0) return false;
  for (auto& [shape, entry] : entries_)
    entry.clear();
  if (++given_up_ == kGiveUps) most_ = 0;
  log_info("memory of the GPU is short: {}",
           most_ == 0 ? "going on without CUDA graphs" : "CUDA graphs are made once more");
  return true;
}

bool GraphCache::give_up_all() noexcept {
  if (GpuGraph::recording()) return false;
  bool any = false;
  for (GraphCache* cache : caches())
    any = cache->give_up() || any;
  return GpuGraph::release_memory() > 0 || any;
}

}  // namespace vfm
