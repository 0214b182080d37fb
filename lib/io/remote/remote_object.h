// The body of RemoteFile, for the sources of this folder. Thread-safety: any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "io/kept_objects.h"
#include "io/remote/remote_file.h"
#include "io/remote/requests.h"

namespace vfm::io {

class RemoteObject : public RemoteFile {
 public:
  struct Facts {
    std::string address, key, version, hash;
    std::uint64_t bytes = 0;
    bool ranges = true;
  };
  RemoteObject(Facts facts, std::shared_ptr<Requester> requester)
      : facts_(std::move(facts)), requester_(std::move(requester)) {}

  const std::string& address() const override { return facts_.address; }
  std::uint64_t size() const override { return facts_.bytes; }
  const std::string& version() const override { return facts_.version; }
  const std::string& stored_hash() const override { return facts_.hash; }
  bool has_ranges() const override { return facts_.ranges; }
  /// Gives it room for bytes that are read more than once, or null. Before others use it.
  void keep(std::shared_ptr<KeptBytes> kept) { kept_ = std::move(kept); }
  KeptBytes* kept() const { return kept_.get(); }
  void pread_exact(void* out, std::size_t size, std::uint64_t offset) const override;
  void pread_all(std::span<const Range> ranges,
                 const std::function<void(std::size_t)>& done) const override;

  /// Calls `take` with the bytes of a range, in order, by one request. If `cancelled` becomes true,
  /// throws Stopped.
  void fetch(std::uint64_t offset, std::uint64_t size,
             const std::function<void(std::span<const char>)>& take,
             const std::atomic<bool>* cancelled = nullptr) const;
  /// The same for all bytes, from a server without ranges. After a fault, begins anew and leaves
  /// out what was taken.
  void stream(const std::function<void(std::span<const char>)>& take,
              const std::atomic<bool>* cancelled) const;

 private:
  Facts facts_;
  std::shared_ptr<Requester> requester_;
  std::shared_ptr<KeptBytes> kept_;
};

}  // namespace vfm::io
