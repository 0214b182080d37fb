// SPDX-License-Identifier: Apache-2.0
#include "io/zstd_reader.h"

#include <zstd.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"

namespace vfm::io {

struct ZstdReader::State {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  State(File opened, std::uint64_t limit) : file(std::move(opened)), most(limit) {}

  File file;
  std::uint64_t most;
  std::unique_ptr<ZSTD_DCtx, Free> context{ZSTD_createDCtx()};
  std::vector<char> buffer = std::vector<char>(ZSTD_DStreamInSize());
  ZSTD_inBuffer input{buffer.data(), 0, 0};
  std::uint64_t packed = 0, unpacked = 0;  // Bytes so far.
  std::size_t left = 1;                    // 0 between two frames.
  bool holds = false;                      // The context may hold unpacked bytes.

  /// Returns false at the end.
  bool refill() {
    input.pos = 0;
    input.size = file.read_some(buffer.data(), buffer.size());
    packed += input.size;
    if (input.size == 0 && left != 0)
      fail_as(Cause::format, "'{}' is cut off, or is not compressed by zstd", file.path());
    return input.size > 0;
  }
  void check_limit() const {
    if (unpacked <= most + kUnpackedEach * packed) return;
    fail_as(
        Cause::limit,
        "'{}' unpacks to more than {}, far more than its own bytes; unpack it yourself, if that "
        "is right",
        file.path(), format_bytes(static_cast<double>(unpacked)));
  }
};

ZstdReader::ZstdReader(File file, std::uint64_t most)
    : state_(std::make_unique<State>(std::move(file), most)) {
  if (!state_->context) fail("cannot read '{}': out of memory", state_->file.path());
}
ZstdReader::~ZstdReader() = default;

std::size_t ZstdReader::read_some(void* out, std::size_t size) {
  State& s = *state_;
  ZSTD_outBuffer output{out, size, 0};
  while (output.pos == 0) {
    if (s.input.pos == s.input.size && !s.holds && !s.refill()) return 0;
    s.left = ZSTD_decompressStream(s.context.get(), &output, &s.input);
    if (ZSTD_isError(s.left))
      fail_as(Cause::format, "'{}' is damaged: zstd says '{}'", s.file.path(),
              ZSTD_getErrorName(s.left));
    s.holds = s.left != 0 && output.pos == output.size;
  }
  s.unpacked += output.pos;
  s.check_limit();
  return output.pos;
}

}  // namespace vfm::io
