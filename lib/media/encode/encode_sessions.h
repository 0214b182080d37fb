// Shares GPUs' video encoding engines (NVENC) between encoders, by sessions.
//
// Before an encoder opens on a GPU, a trial shows whether the GPU has NVENC (A100, H100 and H200
// have none). A GPU without NVENC is left out, with a message. If no GPU is left, the error has all
// reasons. Thread-safety: any thread, unless stated otherwise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "share/engine_sessions.h"

namespace vfm::media {

struct EncoderKind;

/// Returns true if the encoder of this name works on a GPU.
bool encodes_on_gpu(const std::string& name);

/// The most encoders on a GPU at once, in all programs that share the GPU. One NVENC engine can
/// serve this number.
inline constexpr int kEncodeSessions = 3;

/// Returns the luma samples of a picture in a video engine, which rounds both sides up to 64.
std::int64_t engine_samples(int width, int height);

/// Returns the most bytes of GPU memory that NVENC needs, with 8-bit pictures and no B-frames:
///   32 * engine_samples * 3/2 + 48 MiB.
/// 32 is FFmpeg's 8 incoming pictures and 8 outgoing packets (each at most as large as a picture),
/// and 16 reference pictures of H.264. The last term is for the driver, without the shared context
/// (cuda_device.h).
std::int64_t nvenc_session_bytes(int width, int height);

/// Sets sessions for the whole program; call it before threads start. Each encoder has a session
/// from its first frame until it finishes. The calling thread waits for the session. This thread
/// must have no other open encoder, which could not progress meanwhile. If `sessions` is null,
/// encoders take no sessions, and FFmpeg chooses the GPU.
void set_encode_sessions(share::EngineSessions* sessions);

/// Inside lib/media only: takes a session for an encoder of this kind, on a GPU on which it opens.
/// Returns null if no session is needed. Throws Stopped; Error{device}, with the reasons, if no GPU
/// is left; Error{runtime} if no GPU has enough sessions beside the loaded models. A thread with an
/// open encoder does not wait: take_encode_session() throws Error{runtime} if no session is free.
std::shared_ptr<share::EngineSessions::Session> take_encode_session(const EncoderKind& kind,
                                                                    int width, int height);

}  // namespace vfm::media
