// Inside lib/dist only: makes the connections of the pulse (dist/pulse.h).
//
// A rank with children listens, rank 0 on all addresses of its host and the first rank of another
// host on the loopback. A child calls all addresses at once and takes the first that answers. Both
// ends show a token that only the ranks of the run have, the child the first half and the parent
// the second, so that no other program, and no same address on another host, is taken for a rank.
// Nothing here blocks. Errors: what cannot be reached is missing(). Thread-safety: one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace vfm::dist {

/// 128 random bits for the child's half and as many for the parent's.
using PulseToken = std::array<char, 32>;
PulseToken draw_pulse_token();

/// A listening socket.
struct PulseListener {
  int fd = -1;
  int port = 0;
};
/// Listens on any free port; `everywhere`: on all addresses of this host, else on the loopback.
/// Returns fd -1 if it cannot.
PulseListener listen_for_pulse(bool everywhere, int waiting);
/// The addresses of all interfaces of this host that are up, the loopback last.
std::vector<std::string> own_addresses();
/// Raises the soft limit of open files so that `more` can be opened, as far as the hard limit lets.
void allow_descriptors(int more);

class PulseDial {
 public:
  /// A connection stands: the rank at its other end, the descriptor, and that end's address.
  using Made = std::function<void(int rank, int fd, const std::string& address)>;

  /// The connections must be made within `seconds`.
  PulseDial(int rank, const PulseToken& token, double seconds, Made made);
  ~PulseDial();
  PulseDial(const PulseDial&) = delete;
  PulseDial& operator=(const PulseDial&) = delete;

  /// Waits for these ranks. Takes the listener.
  void await(PulseListener listener, std::vector<int> ranks);
  /// Calls the rank at these addresses.
  void call(int rank, const std::vector<std::string>& addresses, int port);

  struct Wanted {
    int fd;
    bool write;
  };
  std::vector<Wanted> descriptors() const;
  /// Goes on with what can go on. `passed`: seconds since the last call.
  void turn(double passed);
  /// Whether nothing is left to do: all is connected, or time is up.
  bool done() const;
  /// The ranks that have no connection.
  const std::vector<int>& missing() const { return missing_; }

 private:
  struct Try {
    int fd;
    int rank;  // of the one called; -1: one that called
    std::string address;
    bool connecting;
    std::string in = {};
    bool shown = false;  // its token
  };
  bool go_on(Try& one);
  bool receive(Try& one, std::size_t size);
  void accept_all();
  void made(int rank, int fd, const std::string& address);

  const int rank_;
  const PulseToken token_;
  const Made made_;
  int listener_ = -1;
  double seconds_;  // that are left
  std::vector<int> missing_;
  std::vector<Try> tries_;
};

}  // namespace vfm::dist
