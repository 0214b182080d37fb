// Decides which program of a pipe may now use which GPU. A worker on the processor is regarded as
// a GPU.
//
// An item that needs a model has one GPU for itself until the item is done. A model stays loaded on
// a GPU while its stage has work. A GPU holds models of several stages if its memory suffices.
// share/gpu_rule.h decides which stage gets which GPU. Decoding and encoding need no model: an item
// takes some of the GPU's sessions (share/engine_sessions.h), and a model may compute on the GPU at
// the same time.
//
// The state is in the file FILE.gpus, where FILE is the file of VFM_SHARE (share/pipe_board.h).
// When a program ends, even by a kill, its GPUs and the memory of its models become free. A worker
// process that inherits life() keeps the memory reserved until the process ends. A program that is
// stopped (SIGSTOP) keeps its models, and keeps the GPUs on which it has items. If it is the
// stopped program's turn to take a free GPU, another program takes this GPU after 50 ms. Without
// VFM_SHARE, the board serves only this program.
//
// The file has room for 64 GPUs and 63 records. A program takes one record for its model, and one
// for each kind of session. If programs give different numbers of bytes or sessions for a GPU, the
// smallest number is used.
// Thread-safety: any thread. Threads of the board call Actions::load and Actions::unload. Calls for
// the same GPU never overlap, and no call is made while the GPU computes an item of this program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "share/ordered_flow.h"

namespace vfm::share {

/// What an item takes of a GPU: the whole GPU (`compute`), or sessions of a video engine.
enum class GpuKind { compute, decode, encode };
/// Returns the flag of a kind for GpuNeed::beside.
constexpr unsigned gpu_flag(GpuKind kind) {
  return 1u << static_cast<unsigned>(kind);
}
/// Bytes of a GPU's memory that one session reserves.
inline constexpr std::int64_t kSessionBytes = std::int64_t{160} << 20;

struct SharedGpu {
  int index = 0;            ///< CUDA's number of the GPU, or -1 - i for the i-th "cpu" of --device.
  std::string name;         ///< Name, unique on this machine: "GPU-5e6b...", "cpu 0".
  std::int64_t memory = 0;  ///< Bytes that models and sessions of all programs may use together.
  int sessions = 0;         ///< Number of sessions of one GpuKind that all programs share.
  /// Bytes of `memory` that this program keeps for its sessions.
  std::int64_t kept = 0;
};

/// The needs of a stage. A stage is one program's use of GPUs for one GpuKind.
struct GpuNeed {
  std::string stage;  ///< Name of the program: "vfm-embed".
  GpuKind kind = GpuKind::compute;
  /// Bytes on each GPU. For a model: the loaded model, and memory to compute an item. For sessions:
  /// the program's CUDA context.
  std::int64_t memory = 0;
  /// For a model: flags (gpu_flag) of the kinds of session that each item also uses. `memory`
  /// includes these sessions. An item never waits for such a session. If no session is free, the
  /// item uses one session above the limit, until a program gives a session back.
  unsigned beside = 0;
  /// File descriptors of the program's input and output, which determine its place in the pipe.
  int input = 0, output = 1;
  /// Counters of the program's results. If null, each result is regarded as handed on when it is
  /// ready.
  std::shared_ptr<const OrderedFlow> flow = nullptr;
};

class GpuBoard {
 public:
  struct Actions {
    /// Loads the model, and returns when the GPU can compute items. If `load` throws an Error,
    /// this stage no longer uses the GPU, as after fail(). An empty function means that there is
    /// nothing to load.
    std::function<void(const SharedGpu&)> load;
    /// Unloads the model, and returns when its memory is free.
    std::function<void(const SharedGpu&)> unload;
  };
  /// A GPU, or sessions of a GPU, that one item has until give() or fail().
  struct Lease {
    const SharedGpu* gpu = nullptr;  ///< Valid while the board exists.
    int sessions = 1;            ///< Number of the item's sessions.
  };

  /// Joins the file `share`.gpus, or makes it. If `share` is empty, uses no file. Does not use GPUs
  /// with too little memory or too few sessions, and warns about them. Throws Error{usage} if the
  /// file cannot be used, or if no GPU has enough memory and sessions.
  GpuBoard(const std::string& share, std::vector<SharedGpu> gpus, GpuNeed need, Actions actions);
  /// Calls finished(), waits until all models are unloaded, and leaves the file. Every lease must
  /// have been given back before.
  ~GpuBoard();
  GpuBoard(const GpuBoard&) = delete;
  GpuBoard& operator=(const GpuBoard&) = delete;

  /// Waits for a GPU for one item, in the order of the calls. Models are loaded only for stages
  /// that wait here, so at least as many threads should wait as there are GPUs. The calling thread
  /// should have no slot (share/slots.h, Slots::Away). After items have waited five seconds for
  /// memory, logs one warning that names the programs that use the memory. Returns nullopt if
  /// `over` becomes true first. Throws Stopped. Throws Error{device}, with the reasons, when all
  /// GPUs of this stage have failed.
  std::optional<Lease> take(const std::atomic<bool>* over = nullptr);
  /// Takes `count` sessions of the GPU with the most free sessions. If no GPU has `count` free
  /// sessions, waits for them. Returns nullopt instead if `wait` is false, or if `count` exceeds
  /// most_sessions(). Throws what take() throws.
  std::optional<Lease> take_sessions(int count, bool wait);
  /// Returns the largest number of sessions that can be free on one GPU while the loaded models
  /// stay loaded. Sessions that these models use (GpuNeed::beside) are not counted.
  int most_sessions() const;
  /// Ends the item, and gives its GPU or sessions back.
  void give(const Lease& lease) noexcept;
  /// Reports that the GPU has failed, and that this stage has no model and no item there any more.
  /// Logs an error with the reason `why`. This stage no longer gets the GPU. The item must be
  /// computed again after another take().
  void fail(const Lease& lease, const std::string& why);
  /// Reports that no more items come until the next take(). Models are unloaded, and other programs
  /// may use the memory. Does not wait.
  void finished() noexcept;

  /// Returns the number of this stage's GPUs that have not failed.
  int gpus_left() const;
  const std::vector<SharedGpu>& gpus() const;
  /// Returns a file descriptor, with FD_CLOEXEC set, that a worker process may inherit.
  int life() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vfm::share
