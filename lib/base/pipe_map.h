// The mapped file of base/pipe_board.h: opened, joined, cleared of programs that died, and its
// slots, which are taken and given without a lock.
//
// Of base/pipe_board.cc alone. Who joins has the lock of the file (base/shared_file.h), and so has
// who collects the tokens of the dead; nothing else waits for it. Thread-safety: as said of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "base/pipe_board.h"
#include "base/pipe_record.h"
#include "base/shared_file.h"

namespace vfm {

/// Whether a record's program may have slots: it has joined, and is not known to have ended.
inline bool counts(const PipeRecord& record) {
  const std::uint32_t used = record.used;
  return used != 0 && record.gone != used;
}

class PipeMap {
 public:
  /// As PipeBoard.
  PipeMap(const std::string& path, int slots, int otherwise, const PipeBoard::Stage& stage);
  /// Leaves, and gives its slots back.
  ~PipeMap();
  PipeMap(const PipeMap&) = delete;
  PipeMap& operator=(const PipeMap&) = delete;

  PipeFile& file() const { return *static_cast<PipeFile*>(shared_.memory()); }
  int own_index() const { return static_cast<int>(own_index_); }
  PipeRecord& own() const { return file().records[own_index_]; }
  int input() const { return input_; }

  /// For a scope in which the own record's times change, which others read without this. Under the
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
  /// Before the lock, of this program's threads.
  std::mutex& mutex() { return shared_.mutex; }

  /// One slot for this program, or one of it back. Under the mutex.
  bool take_slot();
  void give_slot();
  /// Slots that a program has by the file. Its threads hold more (PipeRecord::held) where others
  /// have taken some of it. Any thread.
  int slots_of(const PipeRecord& record) const;
  /// Frees the slots of a program that is stopped, and tells it so. Any thread.
  void pass_by(PipeRecord& record);
  /// make's tokens of programs that were killed go to the file's `lost`, unless another program has
  /// the file's lock: then the next call does it. Under the mutex.
  void collect_tokens();

  // Any thread.
  /// Records of programs that were killed count no more, nor do their slots. Whether other programs
  /// live.
  bool end_dead();
  /// The record that the next slot is for; -1: none.
  int next() const;
  /// Slots that nobody has.
  int free() const;
  /// Wakes a thread of that program.
  void call_next();

 private:
  void agree(int slots, int otherwise, const std::string& path);
  void join(const std::string& path, const PipeBoard::Stage& stage);
  void free_slots_of(std::uint32_t program);

  SharedFile shared_;
  int input_ = 0;
  std::size_t own_index_ = kPipeRecords;  // none
};

}  // namespace vfm
