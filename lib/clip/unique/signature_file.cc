// SPDX-License-Identifier: Apache-2.0
#include "clip/unique/signature_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "curate/measures/luma_plane.h"
#include "io/atomic_file.h"

namespace vfm::clip {
namespace {

constexpr std::size_t kFactsBytes = 1024;
constexpr std::size_t kPictureBytes = sizeof(curate::SignaturePicture);
static_assert(std::endian::native == std::endian::little);
constexpr double kMostSeconds = 24 * 3600;

Json made_by(const ClipSource& source, const media::DecodeOptions& decode) {
  return {{"kind", "signature"},
          {"version", 2},
          {"source_hash", source.hash},
          {"stream", decode.stream},
          {"deinterlace", decode.deinterlace}};
}

std::string facts_text(const std::string& path) {
  const io::File file = io::File::open_regular(path);
  const std::uint64_t bytes = file.size();
  if (bytes < kFactsBytes) fail("'{}' is not a signature", path);
  std::string text(kFactsBytes, '\0');
  file.pread_exact(text.data(), text.size(), bytes - kFactsBytes);
  return text;
}

/// Returns the facts of an existing, complete signature with the settings `made`.
std::optional<SignatureFacts> facts_there(const std::string& path, const Json& made) {
  if (!io::file_exists(path)) return std::nullopt;
  try {
    const Json header = parse_json(facts_text(path), path);
    for (const auto& [name, value] : made.items())
      if (!header.contains(name) || header.at(name) != value) return std::nullopt;
    const std::int64_t pictures = need_integer(header, "pictures", path);
    const std::uint64_t bytes = io::File::open_regular(path).size();
    if (pictures < 0 || bytes != kFactsBytes + kPictureBytes * static_cast<std::uint64_t>(pictures))
      return std::nullopt;
    return SignatureFacts{need_number(header, "seconds", path),
                          static_cast<int>(need_integer(header, "width", path)),
                          static_cast<int>(need_integer(header, "height", path)),
                          need_integer(header, "damaged", path)};
  } catch (const Error&) {
    return std::nullopt;  // the file is replaced
  }
}

SignatureFacts write_signature(const ClipSource& source, const media::DecodeOptions& options,
                               io::AtomicFile& file, Progress& progress) {
  ItemProgress place(progress, io::base_name(source.path));
  media::Decoder decoder(source.path, options);
  const media::StreamInfo& info = decoder.info();
  curate::SignatureMaker maker(
      info.rotation, info.mirror,
      [&](const curate::SignaturePicture& picture) { file.write(picture.data(), kPictureBytes); });
  media::Frame frame;
  std::vector<std::uint8_t> room;
  SignatureFacts facts;
  std::optional<std::int64_t> first;
  while (decoder.next(frame)) {
    if (!first) first = frame.pts;
    facts.seconds =
        static_cast<double>(frame.pts + frame.duration - *first) * info.time_base.value();
    if (facts.seconds > kMostSeconds)
      fail("'{}' is longer than a day; cut it into parts that are shorter", source.path);
    maker.push(curate::luma_plane(frame, room), facts.seconds);
    place.at(facts.seconds, info.duration);
  }
  maker.finish();
  facts.width = info.display_width;
  facts.height = info.display_height;
  facts.damaged = decoder.corrupt();
  Json header = made_by(source, options);
  header.update({{"pictures", maker.count()},
                 {"seconds", facts.seconds},
                 {"width", facts.width},
                 {"height", facts.height},
                 {"damaged", facts.damaged}});
  std::string text = dump_json(header);
  text.resize(kFactsBytes - 1, ' ');
  file.write(text + "\n");
  return facts;
}

}  // namespace

SignatureFile::SignatureFile(const std::string& path) : file_(path) {
  const std::size_t bytes = file_.bytes().size();
  if (bytes < kFactsBytes || (bytes - kFactsBytes) % kPictureBytes != 0)
    fail("'{}' is not a signature", path);
}

std::span<const curate::SignaturePicture> SignatureFile::pictures() const {
  const std::span<const std::byte> bytes = file_.bytes();
  return {reinterpret_cast<const curate::SignaturePicture*>(bytes.data()),
          (bytes.size() - kFactsBytes) / kPictureBytes};
}

std::string signature_path(const std::string& folder, const std::string& hash) {
  return io::join_path(folder, hash + ".signature");
}

SignatureFacts make_signature(const ClipSource& source, const SignatureWork& work,
                              Progress& progress) {
  const std::string path = signature_path(work.folder, source.hash);
  const Json made = made_by(source, work.decode);
  if (!work.force)
    if (const std::optional<SignatureFacts> there = facts_there(path, made)) return *there;
  io::AtomicFile file = io::AtomicFile::await(path);
  if (!work.force)  // another program may have made it meanwhile
    if (const std::optional<SignatureFacts> there = facts_there(path, made)) return *there;
  const SignatureFacts facts = write_signature(source, work.decode, file, progress);
  file.commit();
  return facts;
}

}  // namespace vfm::clip
