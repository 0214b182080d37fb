// SPDX-License-Identifier: Apache-2.0
#include "media/container/container.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/input_limits.h"

namespace vfm::media {
namespace {

// FFmpeg's demuxers of files with moving pictures. Names that this FFmpeg does not have are
// harmless.
constexpr const char* kVideo[] = {
    "mov",          "matroska",   "avi",           "mpegts",     "mpeg",     "mpegvideo",
    "m4v",          "h264",       "hevc",          "vvc",        "evc",      "av1",
    "obu",          "ivf",        "h263",          "h261",       "vc1",      "vc1test",
    "dirac",        "cavsvideo",  "avs2",          "avs3",       "dnxhd",    "mjpeg",
    "mpjpeg",       "mjpeg_2000", "flv",           "live_flv",   "kux",      "asf",
    "asf_o",        "wtv",        "mxf",           "gxf",        "nut",      "nuv",
    "ogg",          "rm",         "ivr",           "rpl",        "dv",       "swf",
    "gif",          "apng",       "r3d",           "cine",       "dhav",     "dxa",
    "yuv4mpegpipe", "flic",       "smk",           "bink",       "roq",      "rl2",
    "smjpeg",       "film_cpk",   "filmstrip",     "ea",         "nsv",      "pva",
    "pmp",          "psxstr",     "thp",           "vmd",        "vivo",     "viv",
    "wc3movie",     "wsvqa",      "xmv",           "yop",        "4xm",      "anm",
    "argo_brp",     "avs",        "bethsoftvid",   "bfi",        "bmv",      "c93",
    "cdxl",         "dsicin",     "frm",           "gdv",        "hnm",      "idcin",
    "iff",          "ifv",        "ingenient",     "ipmovie",    "ipu",      "iv8",
    "jv",           "lmlm4",      "lvf",           "lxf",        "mgsts",    "mlv",
    "mm",           "moflex",     "mods",          "mtv",        "mv",       "mvi",
    "mxg",          "nc",         "paf",           "pp_bnk",     "sdr2",     "ser",
    "sga",          "siff",       "simbiosis_imx", "tiertexseq", "tmv",      "ty",
    "vividas",      "txd",        "jpegxl_anim",   "webp",       "webp_anim"};

// Still pictures, one in a file, recognised by their first bytes. image2pipe is for pictures
// without such bytes (TGA). image2 reads files by pattern and SVG is a script, so they are not
// here.
constexpr const char* kPictures[] = {
    "image2pipe",  "alias_pix",    "brender_pix", "bmp_pipe", "cri_pipe",   "dds_pipe",
    "dpx_pipe",    "exr_pipe",     "gem_pipe",    "gif_pipe", "hdr_pipe",   "j2k_pipe",
    "jpeg_pipe",   "jpegls_pipe",  "jpegxl_pipe", "pam_pipe", "pbm_pipe",   "pcx_pipe",
    "pfm_pipe",    "pgm_pipe",     "pgmyuv_pipe", "pgx_pipe", "phm_pipe",   "photocd_pipe",
    "pictor_pipe", "png_pipe",     "ppm_pipe",    "psd_pipe", "qdraw_pipe", "qoi_pipe",
    "sgi_pipe",    "sunrast_pipe", "tiff_pipe",   "vbn_pipe", "webp_pipe",  "xbm_pipe",
    "xpm_pipe",    "xwd_pipe"};

// Sound files are opened, so that the error message can say what they are.
constexpr const char* kSound[] = {"wav",  "w64",    "aiff", "au",  "caf", "mp3",  "aac",
                                  "flac", "ape",    "wv",   "tta", "tak", "ac3",  "eac3",
                                  "dts",  "truehd", "mlp",  "amr", "mpc", "mpc8", "dsf",
                                  "rso",  "voc",    "loas", "oma"};

// Subtitles are refused with a message of their own.
constexpr const char* kSubtitles[] = {
    "aqtitle",   "ass",        "jacosub",  "lrc",         "mcc",    "microdvd", "mpl2",
    "mpsub",     "pjs",        "realtext", "sami",        "scc",    "srt",      "stl",
    "subviewer", "subviewer1", "sup",      "tedcaptions", "vobsub", "vplayer",  "webvtt"};

// FFmpeg plays any text file as a terminal recording, which is never intended.
constexpr const char* kTextArt[] = {"tty", "bin", "xbin", "adf", "idf"};

// Formats that name other files or addresses.
struct Script {
  const char* demuxer;
  const char* protocol;  // As in --protocols.
  const char* words;
};
constexpr Script kScripts[] = {{"hls", "hls", "an HLS playlist"},
                               {"dash", "dash", "a DASH manifest"},
                               {"webm_dash_manifest", "dash", "a DASH manifest"},
                               {"imf", "imf", "an IMF playlist"},
                               {"concat", "concat", "a concat script"},
                               {"sdp", "sdp", "an SDP session description"},
                               {"rtsp", "rtsp", "an RTSP address"},
                               {"rtp", "rtp", "an RTP address"},
                               {"sap", "sap", "an SAP address"}};

// Other protocols that a protocol or playlist needs.
struct Needs {
  const char* name;
  const char* others;
};
constexpr Needs kNeeds[] = {{"http", "tcp"},         {"https", "tls,tcp,httpproxy"},
                            {"tls", "tcp"},          {"ftp", "tcp"},
                            {"mmsh", "http,tcp"},    {"mmst", "tcp"},
                            {"rtmp", "tcp"},         {"rtmps", "tls,tcp"},
                            {"rtp", "udp,srtp"},     {"rtsp", "rtp,udp,srtp,tcp,http,tls"},
                            {"sap", "rtp,udp,srtp"}, {"sdp", "rtp,udp,srtp"},
                            {"hls", "crypto"}};

bool is_in(std::span<const char* const> names, const char* demuxer) {
  // A demuxer may have several names: "mov,mp4,m4a,3gp,3g2,mj2".
  const std::string_view list(demuxer);
  const std::string_view first = list.substr(0, list.find(','));
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return first == name; });
}

bool is_allowed(const char* demuxer) {
  if (is_in(kVideo, demuxer) || is_in(kPictures, demuxer) || is_in(kSound, demuxer)) return true;
  for (const Script& script : kScripts)
    if (std::strcmp(script.demuxer, demuxer) == 0) return input_limits().allows(script.protocol);
  return false;
}

[[noreturn]] void refuse_text(const std::string& name) {
  fail_as(Cause::format,
          "cannot open '{}': it is text, not a video; give a list of names on standard input",
          name);
}

bool is_text(std::string_view head) {
  return !head.empty() && std::ranges::none_of(head, [](unsigned char c) {
    return std::iscntrl(c) && !std::isspace(c);
  });
}

[[noreturn]] void refuse(const std::string& name, const AVInputFormat& format) {
  for (const Script& script : kScripts)
    if (std::strcmp(script.demuxer, format.name) == 0)
      fail_as(
          Cause::refused,
          "cannot open '{}': it is {}, which names other files or addresses; give what it names, "
          "or allow it with --protocols {},file or {},https",
          name, script.words, script.protocol, script.protocol);
  if (is_in(kTextArt, format.name)) refuse_text(name);
  if (is_in(kSubtitles, format.name))
    fail_as(Cause::format, "'{}' has no video stream (only subtitles or data)", name);
  fail_as(
      Cause::format,
      "cannot open '{}': it seems to be {} ({}), which is not a container of video that vfm reads",
      name, format.long_name ? format.long_name : format.name, format.name);
}

// FFmpeg recognises some playlists only by their file names, and takes others for another format.
const char* script_by_text(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return nullptr;
  text.remove_prefix(begin);
  if (text.starts_with("#EXTM3U")) return "hls";
  if (text.starts_with("ffconcat")) return "concat";
  if (text.starts_with('<') && text.find("<MPD") != std::string_view::npos) return "dash";
  if (text.starts_with('<') && text.find("<CompositionPlaylist") != std::string_view::npos)
    return "imf";
  if (text.starts_with("v=0") && text.find("\nm=") != std::string_view::npos) return "sdp";
  return nullptr;
}

bool is_animated_webp(std::string_view head) {
  return head.size() > 20 && head.starts_with("RIFF") && head.substr(8, 8) == "WEBPVP8X" &&
         (head[20] & 2) != 0;
}

// Keeps only the extension, because FFmpeg would take a pattern in the name for many pictures.
std::string plain_name(const std::string& name) {
  std::string result = "input";
  const std::size_t dot = name.find_last_of("./");
  if (dot == std::string::npos || name[dot] != '.' || name.size() - dot > 12) return result;
  for (const char c : name.substr(dot + 1))
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return result;
  return result + name.substr(dot);
}

void add(std::string& list, const std::string& name) {
  list += (list.empty() ? "" : ",") + name;
}

void add_with_needs(std::string& list, const std::string& name) {
  add(list, name);
  for (const Needs& needs : kNeeds)
    if (name == needs.name) add(list, needs.others);
}

}  // namespace

std::string allowed_protocols(const std::string& scheme) {
  std::string list;
  // A web address may redirect from http to https, and back.
  if (scheme == "http" || scheme == "https") {
    add_with_needs(list, "http");
    add_with_needs(list, "https");
  }
  for (const std::string& name : input_limits().protocols)
    add_with_needs(list, name);
  return list.empty() ? "none" : list;
}

std::string allowed_formats() {
  std::string list;
  for (const std::span<const char* const> names :
       {std::span<const char* const>(kVideo), std::span<const char* const>(kPictures),
        std::span<const char* const>(kSound)})
    for (const char* name : names)
      add(list, name);
  for (const Script& script : kScripts)
    if (input_limits().allows(script.protocol)) add(list, script.demuxer);
  return list;
}

std::string read_head(AVIOContext* io) {
  std::string head(4096, '\0');
  const int got =
      avio_read(io, reinterpret_cast<unsigned char*>(head.data()), static_cast<int>(head.size()));
  if (const std::int64_t error = avio_seek(io, 0, SEEK_SET); error < 0) return "";
  head.resize(static_cast<std::size_t>(std::max(got, 0)));
  return head;
}

bool is_heif(std::string_view head) {
  if (head.size() < 12 || head.substr(4, 4) != "ftyp") return false;
  for (const char* brand :
       {"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1", "avif", "avis"})
    if (head.substr(8, 4) == brand) return true;
  return false;
}

int recognise_container(AVIOContext* io, std::string_view head, const std::string& name,
                        const std::string& hint, const AVInputFormat** found) {
  const char* script = script_by_text(head);
  const AVInputFormat* format = script ? av_find_input_format(script) : nullptr;
  if (!format) {
    const int error = av_probe_input_buffer2(io, &format, plain_name(hint).c_str(), nullptr, 0, 0);
    if (error == AVERROR_INVALIDDATA && is_text(head)) refuse_text(name);
    if (error < 0) return error;
    if (io->error == AVERROR_EXIT) return io->error;  // The probe saw only part of the bytes.
  }
  if (std::strcmp(format->name, "image2") == 0)
    if (const AVInputFormat* pipe = av_find_input_format("image2pipe")) format = pipe;
  if (!is_allowed(format->name)) refuse(name, *format);
  if (is_animated_webp(head) && std::strcmp(format->name, "webp_pipe") == 0)
    fail_as(
        Cause::decode,
        "'{}' is an animated WebP, which this FFmpeg does not decode; make a GIF or an mp4 of it",
        name);
  *found = format;
  return 0;
}

}  // namespace vfm::media
