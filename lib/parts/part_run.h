// The parts of one tool's work in an output folder, and the part that this process does.
//
//   PartRun run(directory, "clip", choice);
//   while (auto part = run.next(digest_of))
//     if (part->done()) print_manifest(part->path("manifest.jsonl"));
//     else part->complete(work(*part));
//
// The files of the parts of TOOL are in DIR/parts/TOOL/:
//   run.json             {"version":1,"tool":"vfm-TOOL","parts":N}, for other tools than vfm-clip,
//                        whose parts DIR/parts/list.json counts (parts/clip_list.h)
//   00003/               the part's own files: manifest.jsonl, errors.jsonl and what else it needs
//   00003/lease-1-7      while a process works at the part (parts/part_lease.h)
//   00003/failed.json    why the last process gave the part up
//   00003/temporary/     temporary files of the outputs that the part writes
//   00003/done.json      the marker, written last (parts/part_marker.h)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "parts/part_choice.h"
#include "parts/part_marker.h"

namespace vfm::parts {

/// Returns the command that does the parts of `tool`, such as "vfm-clip" for "clip".
std::string command_of(const std::string& tool);
/// Returns "00003" for 3.
std::string part_name(int part);
/// Returns DIR/parts/TOOL/00003.
std::string part_folder(const std::string& directory, const std::string& tool, int part);

/// Returns the number of parts that `tool`, such as "clip", has in the folder, from the list or
/// from run.json, or nullopt if the folder has no parts of the tool. Throws Error.
std::optional<int> count_parts(const std::string& directory, const std::string& tool);

/// A part that this process does. The lease is renewed by a thread, and given back by the
/// destructor. While a Part exists, an AtomicFile of this process whose target is below DIR has its
/// temporary file in the part's folder, and the next process that does the part removes what a
/// killed one left there. So at most one Part may exist in a process. Thread-safety: lost() any
/// thread, other functions one thread at a time.
class Part {
 public:
  ~Part();
  Part(Part&&) noexcept;
  Part& operator=(Part&&) = delete;

  int number() const;
  /// Returns true if the part has a marker with these inputs. Then the part has no lease, its
  /// manifest.jsonl is complete, and nothing is to be done but to print the manifest.
  bool done() const;
  /// Returns the digest of the part's inputs.
  const std::string& inputs() const;
  /// Returns the part's folder, which exists.
  const std::string& folder() const;
  /// Returns the path of one of the part's own files, such as "errors.jsonl".
  std::string path(std::string_view name) const;
  /// Returns true if another process has taken the part, because this one showed no sign of life
  /// for too long. The caller then stops work at the part, without complete() or fail().
  bool lost() const;
  /// Throws Error, which names the other process, if lost().
  void check_lost() const;

  /// Writes the marker, and gives back the lease. Call it when all outputs are durable. A marker
  /// that another process wrote in the meantime stays as it is, since it tells of the same bytes.
  void complete(const PartResults& results);
  /// Gives the part back and writes the reason for `status`, after a fault that may pass: of disk,
  /// memory or network.
  void fail(const std::string& why);

 private:
  friend class PartRun;
  struct State;
  explicit Part(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Thread-safety: one thread at a time.
class PartRun {
 public:
  /// Returns a digest (hash_hex(), base/hash.h) of all that decides the outputs of the part: its
  /// input and the settings of the tool. Called for a part with a marker, and for the part that
  /// next() returns.
  using DigestOf = std::function<std::string(int part)>;

  /// Opens the parts of `tool`, such as "clip", in DIR. `choice` must not be whole. The number of
  /// parts is that of the list for "clip". Else it is that of run.json, the choice, or the list of
  /// DIR, and run.json is created. Throws Error{usage} if nobody said the number of parts, if the
  /// part's number is not below it, or if vfm-clip list made no list; Error{conflict} if the choice
  /// names another number of parts than DIR has.
  PartRun(std::string directory, std::string tool, const PartChoice& choice);
  ~PartRun();

  int parts() const;
  /// Returns the next part, and removes its marker if that is of other inputs. Call it when the
  /// Part before is destroyed.
  ///
  /// With one fixed part: returns the part, and then nullopt. Throws Error if another process works
  /// at the part.
  ///
  /// With Kind::automatic: returns parts that have no marker of these inputs and on which no other
  /// process works. While others work at all the remaining parts, waits, since one of them may die.
  /// Returns nullopt when all parts are done, except those that this process got before; and when
  /// the run winds up (base/stop.h). Throws Stopped.
  std::optional<Part> next(const DigestOf& digest_of);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes leases and temporary files that killed processes left in parts that are done. Does
/// nothing if the folder has no parts of the tool. Waits until it is known that the processes have
/// been killed (LeaseWatch). Throws Error and Stopped.
void tidy_parts(const std::string& directory, const std::string& tool);

}  // namespace vfm::parts
