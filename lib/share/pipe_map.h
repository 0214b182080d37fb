// The file of share/pipe_board.h in memory.
//
// Only share/pipe_board.cc uses this header. The file's lock (share/shared_file.h) is needed only
// to join the file and to collect the tokens of dead programs. Slots are taken and given without a
// lock. Thread-safety: stated at each function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "share/pipe_board.h"
#include "share/pipe_record.h"
#include "share/shared_file.h"

namespace vfm::share {

/// Returns whether the record's program may have slots: it has joined, and has not ended.
inline bool counts(const PipeRecord& record) {
  const std::uint32_t used = record.used;
  return used != 0 && record.gone != used;
}

class PipeMap {
 public:
  PipeMap(const std::string& path, int slots, int otherwise, const PipeBoard::Stage& stage);
  /// Gives this program's slots back, and leaves the file.
  ~PipeMap();
  PipeMap(const PipeMap&) = delete;
  PipeMap& operator=(const PipeMap&) = delete;

  PipeFile& file() const { return *static_cast<PipeFile*>(shared_.memory()); }
  int own_index() const { return static_cast<int>(own_index_); }
  PipeRecord& own() const { return file().records[own_index_]; }
  int input() const { return input_; }

  /// While such an object exists, readers without the mutex see that the times in own() are
  /// changing. Needs the mutex.
  class Changing {
   public:
    explicit Changing(PipeRecord& record) : version_(record.version) { ++version_; }
    ~Changing() { ++version_; }
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;

   private:
    std::atomic<std::uint32_t>& version_;
  };
  /// Returns the mutex that excludes other threads of this program. Lock it before the file.
  std::mutex& mutex() { return shared_.mutex; }

  /// Take or give one slot of this program. Need the mutex.
  bool take_slot();
  void give_slot();
  /// Returns the number of slots that the file gives to the program of `record`. The program's
  /// threads may hold more slots (PipeRecord::held) if other programs took slots from it while it
  /// was stopped. Any thread.
  int slots_of(const PipeRecord& record) const;
  /// Frees the slots of a stopped program, and marks its record. Any thread.
  void pass_by(PipeRecord& record);
  /// Adds the jobserver tokens of killed programs to `lost` in the file. If another program has the
  /// file's lock, leaves this to the next call. Needs the mutex.
  void collect_tokens();

  // The functions below are for any thread.
  /// Marks the records of killed programs, and frees their slots. Returns whether other programs
  /// still run.
  bool end_dead();
  /// Returns the index of the record whose program gets the next slot, or -1 if no program wants a
  /// slot.
  int next() const;
  int free() const;
  /// Wakes a thread of the program that next() returns.
  void call_next();

 private:
  void agree(int slots, int otherwise, const std::string& path);
  void join(const std::string& path, const PipeBoard::Stage& stage);
  void free_slots_of(std::uint32_t program);

  SharedFile shared_;
  int input_ = 0;
  std::size_t own_index_ = kPipeRecords;  // no record
};

}  // namespace vfm::share
