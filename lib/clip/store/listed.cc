// SPDX-License-Identifier: Apache-2.0
#include "clip/store/listed.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/file.h"
#include "io/folder.h"
#include "io/remote/address.h"
#include "shard/writer.h"

namespace vfm::clip {
namespace {

bool can_be_read(const std::string& path) {
  try {
    char byte = 0;
    io::File::open_read(path).read_some(&byte, 1);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The same for a bucket, which may refuse because the credentials have ended.
bool may_open_object(const std::string& path) {
  try {
    return io::is_file(path) || !io::is_folder(io::dir_name(path));
  } catch (const Error&) {
    return true;
  }
}

/// Returns whether an input that could not be opened may be opened another time.
bool may_open(const std::string& path) {
  if (io::is_bucket(path)) return may_open_object(path);
  if (io::is_remote(path)) return false;  // The server has said that it does not give it.
  if (io::is_url(path)) return true;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) return S_ISREG(facts.st_mode) && !can_be_read(path);
  std::error_code wrong;
  return errno != ENOENT || !std::filesystem::is_directory(io::dir_name(path), wrong);
}

}  // namespace

bool is_of_machine(const io::Fault& fault) {
  return may_pass(fault.cause) || fault.cause == Cause::line;
}

io::Fault settled(io::Fault fault) {
  if (fault.cause == Cause::open && may_open(fault.input)) fault.cause = Cause::disk;
  return fault;
}

StorePlace store_place(const ClipOptions& options, const ClipItem& item, const Json& settings) {
  const std::string name = store_name(item);
  if (!options.part) return {options.directory, name, options.directory};
  Hasher hasher;
  hasher.update(dump_json(settings));
  for (const ClipSource& source : item.sources)
    hasher.update("\n" + source.hash + " " + source.path);
  const std::string digits = hasher.hex128().substr(0, 16);
  const auto subfolder = static_cast<std::size_t>(options.part->digits);
  return {io::join_path(options.directory, digits.substr(0, subfolder)),
          name.substr(0, name.size() - digits.size()) + digits, options.part->unfinished};
}

std::unique_ptr<ClipStore> open_store(const ClipOptions& options, const StorePlace& place,
                                      const Json& settings) {
  return make_clip_store(options.format, place.directory, place.name, settings, options.shard_bytes,
                         options.part != nullptr);
}

KeptClips OutputSink::begin(bool keep) {
  return with_outputs(options_, [&] { return store_.begin(keep); });
}

void OutputSink::add_kept() {
  with_outputs(options_, [&] { store_.add_kept(); });
}

/// A sample that no shard can have is of the source.
void OutputSink::add(const shard::Sample& sample) {
  shard::check_sample(shard::view_of(sample));
  with_outputs(options_, [&] { store_.add(sample); });
}

Json OutputSink::finish(Json summary) {
  return with_outputs(options_, [&] { return store_.finish(std::move(summary)); });
}

}  // namespace vfm::clip
