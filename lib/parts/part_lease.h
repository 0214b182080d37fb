// A lease: the right of one process to work at a part, without a clock or lock of several hosts.
//
// The files are FOLDER/lease-G-B, with generation G and beat B, {"host":…, "pid":…, "machine":…,
// "node_kind":…, "begun":…, "beat_seconds":…, "patience":…}. Each file is created if absent, so one
// process gets it.
//   - lease-1-0 is the first claim. It stays until the lease ends.
//   - Each beat creates lease-G-(B+1) and removes lease-G-B, unless B is 0.
//   - A process that has seen no new beat for three beats, and for more than 60 seconds, creates
//     lease-(G+1)-0 and then removes generation G. It counts this time by its own clock, from the
//     moment when it saw the last change. Where it can see that the process of the lease has ended
//     (io::ProcessName), it does not wait.
//   - A holder that sees a higher generation has lost the lease. So has a holder that could not
//     write a beat for this time.
// If leases have been lost by error, two processes may work at one part. They write the same bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/process_name.h"
#include "io/store.h"

namespace vfm::parts {

/// The default time between two beats. Patience is at least three beats, and longer than the
/// attribute caches of network file systems (60 seconds).
inline constexpr double kBeatSeconds = 20, kLeastPatience = 65;

/// Beat and patience in seconds.
struct LeaseTimes {
  double beat = kBeatSeconds, patience = kLeastPatience;
  /// Returns the times for VFM_LEASE_SECONDS. Then patience is three beats.
  static LeaseTimes of(std::optional<double> lease_seconds);
};

/// The name of a lease's file, such as "lease-1-7". Later leases are larger.
struct LeaseName {
  int generation = 0;
  std::uint64_t beat = 0;
  auto operator<=>(const LeaseName&) const = default;

  std::string text() const;
};
/// Returns the name in this text, or nullopt for another text.
std::optional<LeaseName> parse_lease_name(std::string_view text);

/// The lease of a folder, as a file says it.
struct LeaseFacts {
  int generation = 0;
  std::uint64_t beat = 0;
  io::ProcessName process;
  std::string node_kind;  ///< PartChoice::node_kind of the holder.
  std::string begun;      ///< Time in UTC by the holder's clock.
  LeaseTimes times;   ///< Times of the holder.
};
/// Returns the names of the leases of the folder, the oldest first.
std::vector<LeaseName> leases_of(const io::Store& store, const std::string& folder);
/// Returns what a file of a lease says, or nullopt if there is no such file.
std::optional<LeaseFacts> read_lease(const io::Store& store, const std::string& folder,
                                     const LeaseName& name);
/// Returns the newest lease of the folder, or nullopt if there is none.
std::optional<LeaseFacts> find_lease(const io::Store& store, const std::string& folder);

/// Sees whether holders show signs of life. Thread-safety: one thread at a time.
class LeaseWatch {
 public:
  enum class Sign { alive, unknown, dead };
  /// Returns alive if the lease has changed since the watch first saw it, dead if its process has
  /// ended or if it did not change for its patience, and unknown before.
  Sign see(const std::string& folder, const LeaseFacts& lease);
  void forget(const std::string& folder) { seen_.erase(folder); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    int generation = 0;
    std::uint64_t beat = 0;
    bool changed = false;
    Clock::time_point since;
  };
  std::map<std::string, Seen> seen_;
};

/// Sleeps, and ends earlier if the run winds up (base/stop.h). Throws Stopped.
void pause(double seconds);

/// A lease that this process has. A thread renews it. Thread-safety: lost() any thread.
class PartLease {
 public:
  /// Claims the folder, if there is no lease, or if `watch` says that its holder is dead. Returns
  /// null if another process has it.
  static std::unique_ptr<PartLease> claim(io::Store& store, const std::string& folder,
                                          const LeaseTimes& times, LeaseWatch& watch,
                                          const io::ProcessName& process,
                                          const std::string& node_kind = {});
  /// Ends the thread, and removes the lease's files unless it is lost.
  ~PartLease();
  PartLease(const PartLease&) = delete;

  int generation() const;
  const std::string& begun() const;
  bool lost() const;

 private:
  struct State;
  explicit PartLease(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace vfm::parts
