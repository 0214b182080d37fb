// The encoders that work on a GPU's video engine, NVENC, and their sessions there.
//
// A GPU without NVENC (A100, H100, H200) is found by a trial before an encoder opens on it: it is
// left out by name, and if no GPU is left, the error has all the reasons. Thread-safety: any
// thread, unless stated otherwise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "share/engine_sessions.h"

namespace vfm::media {

struct EncoderKind;

/// True if the encoder of this name works on a GPU.
bool encodes_on_gpu(const std::string& name);

/// Encoders on a GPU at once, of all programs that share it: as many as one NVENC engine can serve.
/// The driver of a GeForce allows a few more.
inline constexpr int kEncodeSessions = 3;

/// Luma samples of a picture as a video engine keeps it: both sides rounded up to 64.
std::int64_t engine_samples(int width, int height);

/// Most bytes of GPU memory for NVENC, with 8-bit pictures and no B-frames:
///   32 * engine_samples * 3/2 + 48 MiB:
/// FFmpeg's 8 incoming pictures, 8 outgoing packets, each at most as large as a picture, and 16
/// reference pictures of H.264; the last term is for the driver, beside the shared context
/// (cuda_device.h).
std::int64_t nvenc_session_bytes(int width, int height);

/// For the whole program, before threads start: from now on encoders take sessions from it, from
/// their first frame until they finish. They wait in the calling thread, which must have no other
/// open encoder, since that would not progress. Null: they take none, and FFmpeg chooses the GPU.
void set_encode_sessions(share::EngineSessions* sessions);

/// Inside lib/media only: a session for an encoder of this kind, on a GPU on which it opens; null
/// if none is needed. Throws Stopped; Error{device} where no GPU is left, with the reasons;
/// Error{runtime} if no GPU has enough sessions beside the loaded models, or none is free for a
/// thread with an open encoder, which does not wait.
std::shared_ptr<share::EngineSessions::Session> take_encode_session(const EncoderKind& kind,
                                                                    int width, int height);

}  // namespace vfm::media
