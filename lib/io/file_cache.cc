// SPDX-License-Identifier: Apache-2.0
#include "io/file_cache.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/full_disk.h"
#include "base/stop.h"

namespace vfm::io {

File cached_copy(const std::string& address) {
  File object = File::open_regular(address);
  std::string name = (std::filesystem::temp_directory_path() / ".vfm-copy-XXXXXX").string();
  File copy(::mkostemp(name.data(), O_CLOEXEC), address);
  if (!copy) fail_output(errno, "cannot make a temporary file for a copy of '{}'", address);
  ::unlink(name.c_str());
  std::vector<char> buffer(1 << 20);
  while (const std::size_t got = object.read_some(buffer.data(), buffer.size())) {
    copy.write_all(buffer.data(), got);
    check_stop();
  }
  if (::lseek(copy.fd(), 0, SEEK_SET) < 0) fail_errno(errno, "cannot read '{}'", address);
  return copy;
}

}  // namespace vfm::io
