// The outputs of one part of a list (vfm-clip --part), which processes on several hosts may make.
//
// The outputs of a unit (parts/clip_list.h) are DIR/<hh>/<h>-00000.tar, ... and DIR/<hh>/<h>.json.
// The 16 hex digits <h> are a hash of the settings, and of the contents and the paths of the unit's
// sources; <hh> are the first digits of <h>. So units with equal contents have outputs of
// different names, and every process that makes a unit writes the same bytes under the same names.
// Therefore existing files of a unit are never removed, only replaced by equal ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json_fwd.h"
#include "clip/options.h"
#include "clip/source.h"
#include "clip/store/store.h"
#include "io/error_log.h"

namespace vfm::clip {

/// What run() has to know of the part that it does. Thread-safety: lost() any thread.
struct ListedPart {
  /// Folder for unfinished work (ledger, ClipParts). Only this process writes the folder.
  std::string unfinished;
  int digits = 2;  ///< Number of hex digits in the names of DIR's subfolders.
  /// Returns true if another process has taken the part. Then run() stops.
  std::function<bool()> lost;
  /// Called with each record and fault, in input order, on the thread of run(), in place of the
  /// manifest and errors.jsonl.
  std::function<void(const Json& record)> record;
  std::function<void(const io::Fault& fault)> fault;
  /// Returns the fault as it counts (parts::Part::judged()).
  std::function<io::Fault(io::Fault)> judged = [](io::Fault given) { return given; };
};

/// Returns true if a fault of an input is of the machine (disk, memory, network) and may pass. The
/// fault's cause is settled, and judged by the part.
bool is_of_machine(const io::Fault& fault);
/// Settles the cause of a fault: if the input could not be opened, but may be another time, the
/// cause becomes Cause::disk. Looks whether the file is there and can be read. If the file has
/// gone, but its folder is there, the fault is of the input. Call it once, when the fault arises,
/// because a later look may see something else.
io::Fault settled(io::Fault fault);

/// The place of the files of a store.
struct StorePlace {
  std::string directory, name;
  std::string unfinished;  ///< Folder of the file of ClipParts.
};
/// Returns the place for an item, and for a store with these settings.
StorePlace store_place(const ClipOptions& options, const ClipItem& item, const Json& settings);
/// Opens the store at this place.
std::unique_ptr<ClipStore> open_store(const ClipOptions& options, const StorePlace& place,
                                      const Json& settings);

/// Calls `act`, which reads or writes outputs. In a part, an Error is a fault of the disk, and not
/// of the source.
template <class Act>
auto with_outputs(const ClipOptions& options, Act act) {
  try {
    return act();
  } catch (const Error& error) {
    if (!options.part || error.kind() != ErrorKind::runtime) throw;
    throw Error(error.what(), Cause::disk);
  }
}

/// Passes the clips of a video to its store. Throws the Errors of with_outputs().
class OutputSink : public ClipSink {
 public:
  OutputSink(const ClipOptions& options, ClipStore& store) : options_(options), store_(store) {}
  KeptClips begin(bool keep) override;
  void add_kept() override;
  void add(const shard::Sample& sample) override;
  Json finish(Json summary) override;

 private:
  const ClipOptions& options_;
  ClipStore& store_;
};

}  // namespace vfm::clip
