// What a server and a process that decodes for it (app/decoder_process, app/decoder_child) say to each other: after a
// greeting of the process, orders with a file and answers with what it became, one at a time. Each is a head of fixed
// size and as many bytes as it says. Both ends are the same binary on the same machine, so fields are as in memory; the
// server believes nothing that it has not checked here. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "core/media.h"

namespace chasqui {

struct DecodeOrder {
  static constexpr std::uint32_t kMark = 0x63647131;
  std::uint32_t mark = kMark;
  std::uint32_t kind = 0;  // a MediaKind
  std::int32_t rate = 0;   // of samples; of a picture 0
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;  // of the file, which follow
};

struct DecodeAnswer {
  static constexpr std::uint32_t kMark = 0x63646131;
  enum Kind : std::uint32_t { ready, decoded, refused };
  std::uint32_t mark = kMark;
  std::uint32_t kind = ready;
  std::uint32_t width = 0;  // of a picture; of a greeting whether system calls are filtered
  std::uint32_t height = 0;
  std::uint64_t bytes = 0;  // which follow: pixels, samples, or why it was refused
};

DecodeOrder order_to_decode(MediaKind kind, std::string_view file, std::int32_t rate);

// For the process: not so large that it could not keep it.
bool is_order(const DecodeOrder& order);

bool is_greeting(const DecodeAnswer& answer);
// What may come of that order: of its kind, not empty, and within every limit of such a picture or sound.
bool can_answer(const DecodeAnswer& answer, const DecodeOrder& order);
// Finite, and none louder than a decoder lets it be.
bool are_samples(std::span<const float> samples);
// A sentence for a client.
bool is_reason(std::string_view text);

}  // namespace chasqui
