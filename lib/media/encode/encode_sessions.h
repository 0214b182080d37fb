// Shares the video encoding engines of GPUs (NVENC) between encoders.
//
// The first encoder on a GPU tests whether the GPU has NVENC (A100, H100 and H200 have no NVENC).
// GPUs without NVENC are not used, and a message names them. Thread-safety: any thread, unless
// stated otherwise.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "share/engine_sessions.h"

namespace vfm::media {

struct EncoderKind;

/// Returns true if the encoder `name` works on a GPU.
bool encodes_on_gpu(const std::string& name);

/// The highest number of encoders that all programs together run on a GPU at a time.
inline constexpr int kEncodeSessions = 3;

/// Returns the number of luma samples of a picture in a video engine, which rounds both sides up to
/// multiples of 64.
std::int64_t engine_samples(int width, int height);

/// Returns an upper bound of the GPU memory in bytes that NVENC needs for 8-bit pictures without
/// B-frames:
///   32 * engine_samples * 3/2 + 48 MiB for the driver.
/// The factor 32 is the sum of 8 incoming pictures, 8 outgoing packets as large as a picture, and
/// 16 reference pictures of H.264. The memory of the shared context (cuda_device.h) is not
/// included.
std::int64_t nvenc_session_bytes(int width, int height);

/// Sets the sessions for the whole program. Must be called before threads start. Each encoder has a
/// session from its first frame until it finishes. A thread that waits for a session must have no
/// other open encoder. If `sessions` is null, encoders take no sessions, and FFmpeg chooses the
/// GPU.
void set_encode_sessions(share::EngineSessions* sessions);

/// Inside lib/media only: takes a session on a GPU on which an encoder of this kind opens. Returns
/// null if the encoder needs no session. Throws Error{device} with the reasons if no GPU can be
/// used. Throws Error{runtime} if the loaded models leave too few sessions on every GPU. Throws
/// Stopped. If the thread has another open encoder and no session is free, throws Error{runtime}
/// without waiting.
std::shared_ptr<share::EngineSessions::Session> take_encode_session(const EncoderKind& kind,
                                                                    int width, int height);

}  // namespace vfm::media
