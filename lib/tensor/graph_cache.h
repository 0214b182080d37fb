// Work that is repeated, as CUDA graphs where its shapes repeat: one call instead of the thousands
// of launches of a training step.
//
// Work is known by a text, its shape: all that the host's code in it depends on. What changes from
// one time to the next comes in by tensors. The first time that a shape comes its work is done
// plainly, and with it all that is done once (algorithms are timed, plans are built); the second
// time it is recorded (tensor/gpu_graph.h). What cannot be recorded is done plainly, which is
// logged once. Results are the same to the last bit either way.
// Thread-safety: the thread that drives the GPU; one that records nothing, any thread.
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
  /// Queues work on the compute stream that reads its argument, and nothing else that changes but
  /// by other work of the GPU; returns new tensors.
  using Work = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

  /// Keeps at most `most` graphs; with 0 all work is done plainly, on any device.
  explicit GraphCache(int most);
  /// Whether caches that are made from now on record anything; at first they do.
  static void allow(bool graphs);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  /// work(inputs), or a copy of what its recording gives for such inputs. `inputs` are on the GPU,
  /// of the same number, sizes and types for the same `shape`.
  std::vector<Tensor> run(const std::string& shape, const std::vector<Tensor>& inputs,
                          const Work& work);

  /// Whether it ever does more than work plainly.
  bool records() const { return most_ > 0; }
  int graphs() const;                                ///< that it has now
  std::int64_t replays() const { return replays_; }  ///< how often work was repeated so

  /// For the allocator, when there is no more memory: gives up all graphs of this process, and the
  /// memory of recordings. Graphs are remade, but not after the third time. False if there was
  /// nothing to give up, or something is being recorded.
  static bool give_up_all() noexcept;

 private:
  struct Entry {
    std::unique_ptr<GpuGraph> graph;
    std::vector<Tensor> inputs, results;  // where the graph reads and writes
    std::int64_t last = 0;                // run() that used it
    int seen = 0, refused = 0;

    void clear();
  };

  bool give_up();
  bool make_room();
  bool record(Entry& entry, const std::vector<Tensor>& inputs, const Work& work);

  int most_, given_up_ = 0;
  std::int64_t runs_ = 0, replays_ = 0;
  bool logged_ = false, said_ = false;  // to the log
  std::map<std::string, Entry> entries_;
};

}  // namespace vfm
