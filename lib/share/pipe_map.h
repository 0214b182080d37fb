// Opens and joins the file that share/pipe_board.h maps into memory, removes dead programs from it,
// and takes and gives its slots without a lock.
//
// Only share/pipe_board.cc uses this file. Only joining and collecting tokens of dead programs need
// the file's lock (share/shared_file.h). Thread-safety: stated at each function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "share/pipe_board.h"
#include "share/pipe_record.h"
#include "share/shared_file.h"

namespace vfm::share {

/// Returns whether a record's program may have slots: it has joined, and is not known to have
/// ended.
inline bool counts(const PipeRecord& record) {
  const std::uint32_t used = record.used;
  return used != 0 && record.gone != used;
}

class PipeMap {
 public:
  /// Joins the file, as PipeBoard's constructor describes.
  PipeMap(const std::string& path, int slots, int otherwise, const PipeBoard::Stage& stage);
  /// Leaves, and gives this program's slots back.
  ~PipeMap();
  PipeMap(const PipeMap&) = delete;
  PipeMap& operator=(const PipeMap&) = delete;

  PipeFile& file() const { return *static_cast<PipeFile*>(shared_.memory()); }
  int own_index() const { return static_cast<int>(own_index_); }
  PipeRecord& own() const { return file().records[own_index_]; }
  int input() const { return input_; }

  /// Marks for a scope that the times of own() change, for readers without the mutex. Needs the
  /// mutex.
  class Changing {
   public:
    explicit Changing(PipeRecord& record) : version_(record.version) { ++version_; }
    ~Changing() { ++version_; }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

   private:
    std::atomic<std::uint32_t>& version_;
  };
  /// Excludes other threads of this program; lock it before the file.
  std::mutex& mutex() { return shared_.mutex; }

  /// Takes one slot for this program, or gives one back. Under the mutex.
  bool take_slot();
  void give_slot();
  /// Returns the slots of a program according to the file. If other programs took slots of it while
  /// it was stopped, its threads hold more (PipeRecord::held). Any thread.
  int slots_of(const PipeRecord& record) const;
  /// Frees the slots of a stopped program, and marks its record. Any thread.
  void pass_by(PipeRecord& record);
  /// Moves make's tokens of killed programs to the file's `lost`. If another program has the file's
  /// lock, does nothing, and the next call moves the tokens. Under the mutex.
  void collect_tokens();

  // Any thread.
  /// Marks the records of killed programs and frees their slots. Returns true if other programs
  /// live.
  bool end_dead();
  /// Returns the record whose program gets the next slot, or -1 if no program wants a slot.
  int next() const;
  /// Returns the number of free slots.
  int free() const;
  /// Wakes a thread of the program that next() names.
  void call_next();

 private:
  void agree(int slots, int otherwise, const std::string& path);
  void join(const std::string& path, const PipeBoard::Stage& stage);
  void free_slots_of(std::uint32_t program);

  SharedFile shared_;
  int input_ = 0;
  std::size_t own_index_ = kPipeRecords;  // none
};

}  // namespace vfm::share
