// Copies what a rank gives of a checkpoint from the GPU to the host, while the next step computes.
//
// The copies pass through pinned memory on a stream of their own (tensor/download.h). What lies in
// a file of this rank as it does on the GPU goes to its place in the snapshot. Parts that some rank
// puts together stay in memory of their own until they are sent. What lies on the host, such as an
// average, is copied at once.
// Thread-safety: the thread that drives the GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>

#include "tensor/download.h"
#include "train/checkpoint/file_collection.h"

namespace vfm::train {

class GpuSnapshot {
 public:
  /// The place of byte `offset` behind the header of a file of this rank. Valid while this object
  /// lives.
  using Place = std::function<std::byte*(const CheckpointFiles::File& file, std::size_t offset)>;
  /// Begins to copy, after what is queued on the compute stream. Keeps the reference.
  GpuSnapshot(const FileCollection& collection, const Place& place);

  /// Bytes of the memory for parts.
  static double memory(const FileCollection& collection);

  /// Work that is queued from now on may change the tensors. Waits until the copies are queued.
  void release();
  /// Whether all copies have come, or cannot.
  bool done();
  /// What a copy threw, when it is done.
  const std::exception_ptr& failure() const { return failure_; }
  /// What FileCollection::run() reads, each part once, when all copies have come. Refers to this
  /// object.
  FileCollection::Read reader();

 private:
  struct Key {
    std::size_t set, parameter;
    std::int64_t begin, end;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, Tensor> parts_;
  std::exception_ptr failure_;
  Download download_;  // ends before its targets do
};

}  // namespace vfm::train
