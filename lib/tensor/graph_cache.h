// A cache of CUDA graphs: work whose shapes repeat is queued with one call instead of the thousands
// of launches of a training step.
//
// Work has a key, the text `shape`, which must name everything that the host's code in the work
// depends on. Values that change between calls come in as tensors. The first call with a shape runs
// the work plainly and does everything that is done once: algorithms are timed, plans are built.
// The second call records the work (tensor/gpu_graph.h). Work that cannot be recorded runs plainly,
// which is logged once. Results are the same to the last bit either way.
// Thread-safety: only the thread that drives the GPU; a cache that records nothing, any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensor/gpu_graph.h"
#include "tensor/tensor.h"

namespace vfm {

class GraphCache {
 public:
  /// Queues work on the compute stream and returns new tensors. The work may read `inputs` and
  /// values that other work of the GPU writes; nothing else that it reads may change.
  using Work = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

  /// Keeps at most `most` graphs. With 0 all work runs plainly, on any device.
  explicit GraphCache(int most);
  /// Sets whether caches that are made from now on record at all; at the start they do.
  static void allow(bool graphs);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  /// Returns work(inputs), or a copy of the results of a replay with the values of `inputs`.
  /// `inputs` are on the GPU. Calls with the same `shape` must pass the same number, sizes and
  /// types of inputs.
  std::vector<Tensor> run(const std::string& shape, const std::vector<Tensor>& inputs,
                          const Work& work);

  /// Whether this cache may record work; false if all work runs plainly.
  bool records() const { return most_ > 0; }
  int graphs() const;                                ///< number of graphs now
  std::int64_t replays() const { return replays_; }  ///< number of replays so far

  /// For the allocator when memory runs out: gives up all graphs of this process and the memory of
  /// recordings. A cache makes graphs again, but not after the third time. Returns false if there
  /// was nothing to give up or something is being recorded.
  static bool give_up_all() noexcept;

 private:
  struct Entry {
    std::unique_ptr<GpuGraph> graph;
    std::vector<Tensor> inputs, results;  // the graph reads and writes these
    std::int64_t last = 0;                // number of the last run() that used it
    int seen = 0, refused = 0;

    void clear();
  };

  bool give_up();
  bool make_room();
  bool record(Entry& entry, const std::vector<Tensor>& inputs, const Work& work);

  int most_, given_up_ = 0;
  std::int64_t runs_ = 0, replays_ = 0;
  bool logged_ = false, said_ = false;  // whether the log has the message
  std::map<std::string, Entry> entries_;
};

}  // namespace vfm
