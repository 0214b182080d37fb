// Reads the tensors of a checkpoint, or of another model, on all ranks of a run together.
//
// Each byte is read once. A file has one reader, which tells all ranks its tensors. A model in any
// format is opened by some ranks, and each of its tensors has one reader. A reader then reads
// the file in pieces, in rounds that all ranks know, and sends each rank what that wants of a
// piece. Ranks that want the same part are a tree: a rank gets its part from one of them and passes
// it on to two others at most. So the file system is asked as often on any number of ranks, and a
// rank that reads nothing sends at most twice what it wants. A reader holds one piece and what is
// sent of it; any rank holds what it gets in a round. After a failure a rank takes part to the end,
// and load() throws. A world of one rank reads only what it wants. Thread-safety: the thread that
// made the world.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/together.h"
#include "dist/world.h"
#include "io/tensor_set.h"
#include "models/folder/load_tensors.h"
#include "train/checkpoint/checkpoint_pieces.h"

namespace vfm::train {

class CheckpointReading {
 public:
  /// Bytes of a piece.
  static constexpr std::int64_t kPiece = std::int64_t{4} << 20;
  /// Opens the set that SafetensorsReader would open. `copies` are what this rank can read in the
  /// place of files: path -> copy. Throws on all ranks if a file cannot be opened. A collective.
  CheckpointReading(dist::World& world, const std::string& folder, const std::string& name,
                    std::map<std::string, std::string> copies = {}, std::int64_t piece = kPiece);
  /// Takes a set that the ranks with a reader_number() have opened, and null on all others. The set
  /// must live until load() returns. Coded tensors have their values as F32. `world` has several
  /// ranks. A collective.
  CheckpointReading(dist::World& world, const io::TensorSet* opened, std::int64_t piece = kPiece);
  /// The most ranks that open such a set.
  static constexpr int kMostReaders = 64;
  static int reader_count(const dist::World& world);
  /// The number of this rank among them; -1: it is none of them.
  static int reader_number(const dist::World& world);

  /// All tensors, without data.
  const io::TensorSet& set() const { return *set_; }
  /// models::load_ranges() with this rank's targets: all ranks have targets for the same tensors in
  /// one order, and each has its own ranges, which may be empty. Call it once. A collective.
  void load(const std::vector<models::RangeTarget>& targets);
  /// The same, without throwing what is found while it reads.
  dist::Verdict try_load(const std::vector<models::RangeTarget>& targets);
  /// Throws Error unless the tensors are those of the targets, with their shapes.
  void check(const std::vector<models::RangeTarget>& targets) const;

 private:
  /// The elements [begin, end) of a whole tensor.
  struct Piece {
    std::size_t target = 0;
    std::int64_t begin = 0, end = 0;
  };
  /// The ranks that this rank gets its part of a tensor from, and passes it on to; -1: none.
  struct Links {
    std::int32_t from = -1, to[2] = {-1, -1};
  };
  void describe(const std::string& folder, const std::string& name);
  void describe_opened(const io::TensorSet* opened);
  void choose_readers();
  const std::string& place_of(const std::string& path) const;
  std::vector<std::vector<Piece>> plan(const std::vector<models::RangeTarget>& targets) const;
  void link(const TensorsOfRanks& readers, std::size_t targets);
  void round(std::size_t number);
  void read(const std::vector<Piece>& pieces, std::size_t number, const Tensor& into);
  void send_parts(const Piece& piece, const Tensor& values, std::vector<dist::Transfer>& sent);
  void store(const Piece& piece, const Tensor& values);
  DType dtype(std::size_t target) const;
  template <class Act>
  void attempt(const Act& act);

  dist::World& world_;
  const std::map<std::string, std::string> copies_;
  const std::int64_t piece_;
  std::unique_ptr<io::TensorSet> set_;
  // Of an opened set a file is what one rank reads of it.
  std::vector<std::string> files_;                                    // paths
  std::vector<int> readers_;                                          // by file
  std::vector<std::size_t> file_of_;                                  // by tensor of the set
  std::map<std::size_t, std::shared_ptr<const io::TensorSet>> open_;  // that this rank reads
  // Of the load() that is going on:
  std::span<const models::RangeTarget> targets_;
  std::vector<HeldPart> own_;                 // by target
  std::vector<std::vector<RankPart>> parts_;  // by target, of those that this rank reads
  std::vector<Links> links_;                  // by target
  std::vector<std::vector<Piece>> pieces_;    // by rank that reads them
  std::vector<int> reading_;                  // ranks that have pieces
  std::size_t expected_ = 0;                  // this rank's pieces before this one are fetched
  std::exception_ptr failure_;                // of this rank
};

}  // namespace vfm::train
