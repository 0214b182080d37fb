// SPDX-License-Identifier: Apache-2.0
#include <archive.h>
#include <archive_entry.h>

#include <cerrno>
#include <exception>

#include "base/error.h"
#include "base/stop.h"
#include "io/atomic_file.h"
#include "shard/reader.h"

namespace vfm::shard {
namespace {

/// Writes a plain tar. Members can have any name that a tar can hold.
class PlainTar {
 public:
  explicit PlainTar(const std::string& path) : file_(path), tar_(archive_write_new()) {
    if (!tar_) fail("cannot write '{}': out of memory", path);
    // GNU names are bytes, in any locale.
    archive_write_set_format_gnutar(tar_.get());
    if (archive_write_open(tar_.get(), this, nullptr, write, nullptr) != ARCHIVE_OK) failed();
  }

  void add(const Sample& sample) {
    for (const Member& member : sample.members) {
      const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
      archive_entry_set_pathname(entry.get(), (sample.key + "." + member.extension).c_str());
      archive_entry_set_filetype(entry.get(), AE_IFREG);
      archive_entry_set_perm(entry.get(), 0644);
      archive_entry_set_size(entry.get(), static_cast<la_int64_t>(member.data.size()));
      if (archive_write_header(tar_.get(), entry.get()) < ARCHIVE_WARN) failed();
      if (archive_write_data(tar_.get(), member.data.data(), member.data.size()) < 0) failed();
    }
  }

  void commit() {
    if (archive_write_close(tar_.get()) != ARCHIVE_OK) failed();
    file_.commit();
  }

 private:
  struct FreeEntry {
    void operator()(archive_entry* entry) const { archive_entry_free(entry); }
  };
  struct FreeArchive {
    void operator()(archive* a) const { archive_write_free(a); }
  };

  /// Keeps exceptions in `error_`, because they must not pass through libarchive, which is C.
  static la_ssize_t write(archive* a, void* self, const void* data, std::size_t size) {
    auto* tar = static_cast<PlainTar*>(self);
    try {
      tar->file_.write(data, size);
      return static_cast<la_ssize_t>(size);
    } catch (...) {
      tar->error_ = std::current_exception();
      archive_set_error(a, EIO, "cannot write");
      return -1;
    }
  }

  [[noreturn]] void failed() {
    if (error_) std::rethrow_exception(error_);
    const char* why = archive_error_string(tar_.get());
    fail("cannot unpack a shard: {}", why ? why : "unknown error");
  }

  io::AtomicFile file_;
  std::exception_ptr error_;  // Thrown in write().
  // Declared after `file_`, because closing writes to it.
  std::unique_ptr<archive, FreeArchive> tar_;
};

}  // namespace

Unpacked unpack(const std::string& path, const std::string& out, const ReadLimits& limits) {
  StreamReader reader(path, limits);
  Unpacked done;
  done.compressed = reader.compressed();
  if (!done.compressed) return done;
  PlainTar tar(out);
  Sample sample;
  bool any = false;
  for (;;) {
    check_stop();
    try {
      if (!reader.next(sample)) break;
    } catch (const Error& error) {
      if (!any) throw;
      done.damage = error.what();
      done.cause = error.cause();
      break;
    }
    tar.add(sample);
    any = true;
  }
  done.refused = reader.refused();
  if (!any)
    fail("{}", done.refused.empty() ? fmt::format("'{}' has no samples", path)
                                    : done.refused.front().why);
  tar.commit();
  return done;
}

}  // namespace vfm::shard
