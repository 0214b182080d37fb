// The parts of one tool's work in an output folder, and the part that this process does.
//
//   PartRun run(directory, "clip", choice);
//   while (auto part = run.next(digest_of))
//     if (part->done()) print_manifest(part->path("manifest.jsonl"));
//     else part->complete(work(*part));
//
// The files of the parts of TOOL are in DIR/parts/TOOL/:
//   run.json             what all processes agree on (parts/run_file.h)
//   00003/               the part's own files: manifest.jsonl, errors.jsonl and what else it needs
//   00003/lease-1-7      while a process works at the part (parts/part_lease.h)
//   00003/failed.json    why the last process gave the part up, and "crashes", how many processes,
//                        one after the other, saw an input crash what decoded it
//   00003/temporary/     temporary files of the outputs that the part writes
//   00003/done.json      the marker, written last (parts/part_marker.h)
//   notes/               what all markers say, in short (parts/part_notes.h)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "io/error_log.h"
#include "parts/part_choice.h"
#include "parts/part_marker.h"
#include "parts/run_file.h"

namespace vfm::parts {

/// Returns "00003" for 3.
std::string part_name(int part);
/// Returns DIR/parts/TOOL/00003.
std::string part_folder(const std::string& directory, const std::string& tool, int part);
/// Returns the name of a part's marker in the store of DIR/parts, such as "clip/00003/done.json".
std::string marker_name(const std::string& tool, int part);
/// Returns the marker of a part that was done. Throws Error if it has disappeared or is damaged.
PartMarker need_marker(const std::string& directory, const std::string& tool, int part);
/// Removes the markers of all parts of `tool` in DIR, so that they are done again. Throws Error.
void forget_parts(const std::string& directory, const std::string& tool);

/// An input that crashes what decodes it (Cause::crash) fails the part, because the reason may be
/// the machine. When this many processes have seen it, one after the other, the input is bad.
inline constexpr int kMostCrashes = 3;

/// A part that this process does. The lease is renewed by a thread, and given back by the
/// destructor. While a Part exists, an AtomicFile of this process whose target is below DIR has its
/// temporary file in the part's folder, and the next process that does the part removes what a
/// killed one left there. So at most one Part may exist in a process. Thread-safety: lost() and
/// judged() any thread, other functions one thread at a time.
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
  /// Returns the folder of temporary files, which this process removes when the part ends. Other
  /// processes that help with the part may have theirs in folders there. The part is not done().
  const std::string& temporary() const;
  /// Returns true if another process has taken the part, because this one showed no sign of life
  /// for too long. The caller then stops work at the part, without complete() or fail().
  bool lost() const;
  /// Throws Error, which names the other process, if lost().
  void check_lost() const;

  /// Returns the fault as it counts. A crash in the last of kMostCrashes tries becomes
  /// Cause::decode, with a message that says so.
  io::Fault judged(io::Fault fault) const;

  /// Writes the marker, and gives back the lease. Call it when all outputs are durable. A marker
  /// that another process wrote in the meantime stays as it is, since it tells of the same bytes.
  void complete(const PartResults& results);
  /// Gives the part back and writes the reason for `status`, after a fault that may pass: of disk,
  /// memory or network. `crashed` has the inputs of faults of Cause::crash.
  void fail(const std::string& why, const std::set<std::string>& crashed = {});

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

  /// Opens the parts of `tool`, such as "clip", in DIR. `choice` must not be whole. Creates
  /// run.json if there is none, and throws what agree_on_run() throws. If `terms` names a folder of
  /// clips, a part begins when the parts that it needs are done (parts/needed_parts.h), with
  /// `all_clips` only when all parts of vfm-clip are. `progress` says what next() waits for.
  PartRun(std::string directory, std::string tool, const PartChoice& choice,
          const RunTerms& terms = {}, bool all_clips = false, Progress& progress = no_progress());
  ~PartRun();

  int parts() const { return file().parts; }
  const RunFile& file() const;
  /// Returns the next part, and removes its marker if that is of other inputs. Call it when the
  /// Part before is destroyed.
  ///
  /// With one fixed part: returns the part, and then nullopt. Throws Error if another process works
  /// at the part, and Error{no_part} if the run winds up before the part begins.
  ///
  /// With Kind::automatic: returns parts that have no marker of these inputs and on which no other
  /// process works. While others work at all the remaining parts, waits, since one of them may die,
  /// and looks at 16 of these parts at a time.
  /// Returns nullopt when all parts are done, except those that this process got before.
  ///
  /// If only parts remain whose needs are not done: throws Error, which names these, or with
  /// choice.follow waits for them. Then throws Error when for this time none of them was done, and
  /// no process that works at them gave a sign of life. With choice.waiting, begins no part while
  /// the finished parts are further ahead (parts/parts_ahead.h).
  ///
  /// With Kind::next: returns one part whose needs are done, that has no marker and on which no
  /// other process works, and then nullopt. To know that a process has died, it may wait as long as
  /// the patience of leases (part_lease.h), but only if it finds no other part. Throws
  /// Error{no_part} if there is none.
  ///
  /// Returns nullopt when the run winds up (base/stop.h). Throws Stopped.
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
