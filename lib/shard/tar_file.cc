// SPDX-License-Identifier: Apache-2.0
#include "shard/tar_file.h"

#include <utility>

#include "io/zstd_frames.h"
#include "io/zstd_reader.h"
#include "shard/reader.h"
#include "shard/writer.h"

namespace vfm::shard {

TarFile::TarFile(const std::string& path) : file_(open_tar(path)) {
  if (io::is_zstd_name(path)) frames_ = std::make_unique<io::ZstdFrames>(std::move(file_));
}
TarFile::~TarFile() = default;

const std::string& TarFile::path() const {
  return frames_ ? frames_->file().path() : file_.path();
}
std::uint64_t TarFile::size() const {
  return frames_ ? frames_->size() : file_.size();
}
void TarFile::pread_exact(void* out, std::size_t size, std::uint64_t offset) const {
  frames_ ? frames_->pread_exact(out, size, offset) : file_.pread_exact(out, size, offset);
}
const io::RemoteFile* TarFile::remote() const {
  return frames_ ? nullptr : file_.remote();
}

bool has_index(const std::string& tar) {
  return io::file_exists(energon_index_path(tar)) &&
         (!io::is_zstd_name(tar) || io::ZstdFrames::are_in(open_tar(tar)));
}

}  // namespace vfm::shard
