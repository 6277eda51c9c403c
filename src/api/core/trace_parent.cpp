#include "api/core/trace_parent.h"

#include "base/random_bits.h"

namespace chasqui {
namespace {

// What the standard asks of everybody to pass on.
constexpr std::size_t kStateMax = 512;

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == text.npos; }
bool is_zero(std::string_view text) { return text.find_first_not_of('0') == text.npos; }

}  // namespace

// 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01. Later versions may append fields, never change these.
std::optional<TraceParent> read_trace_parent(std::string_view traceparent, std::string_view tracestate) {
  constexpr std::size_t kSize = 55;
  if (traceparent.size() < kSize) return std::nullopt;
  const std::string_view version = traceparent.substr(0, 2);
  const std::string_view trace = traceparent.substr(3, 32);
  const std::string_view parent = traceparent.substr(36, 16);
  const std::string_view flags = traceparent.substr(53, 2);
  const bool dashes = traceparent[2] == '-' && traceparent[35] == '-' && traceparent[52] == '-';
  if (!dashes || !is_hex(version) || !is_hex(trace) || !is_hex(parent) || !is_hex(flags)) return std::nullopt;
  if (version == "ff" || is_zero(trace) || is_zero(parent)) return std::nullopt;
  if (traceparent.size() > kSize && (version == "00" || traceparent[kSize] != '-')) return std::nullopt;
  TraceParent out{std::string(trace), std::string(parent), {}, true};
  if (tracestate.size() <= kStateMax) out.state = tracestate;
  out.sampled = (flags[1] <= '9' ? flags[1] - '0' : flags[1] - 'a' + 10) % 2 == 1;
  return out;
}

std::string random_hex(std::size_t digits) {
  const RandomBits random;
  std::string out;
  do {
    out.clear();
    while (out.size() < digits) {
      std::uint64_t bits = random();
      for (int i = 0; i < 16 && out.size() < digits; ++i, bits >>= 4) out += "0123456789abcdef"[bits & 15];
    }
  } while (is_zero(out));
  return out;
}

}  // namespace chasqui
