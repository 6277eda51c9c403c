#include "app/decoder_child.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include <sys/stat.h>
#include <unistd.h>

#include "app/decoder_wire.h"
#include "app/inherited_files.h"
#include "base/clock.h"
#include "cache/whole_file.h"
#include "model/picture_file.h"
#include "model/sound_file.h"

namespace chasqui {
namespace {

bool write_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::write(socket, at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

bool write_answer(int socket, DecodeAnswer head, const void* from, std::size_t bytes) {
  head.bytes = bytes;
  return write_all(socket, &head, sizeof head) && write_all(socket, from, bytes);
}

bool refuse(int socket, const Error& error) {
  const std::string_view why = error.message;
  return write_answer(socket, {.kind = DecodeAnswer::refused}, why.data(), why.size());
}

bool answer_order(int socket, const DecodeOrder& order, std::string_view file) {
  DecodeAnswer head{.kind = DecodeAnswer::decoded};
  if (order.kind == static_cast<std::uint32_t>(MediaKind::picture)) {
    const auto picture = decode_picture(file);
    if (!picture) return refuse(socket, picture.error());
    head.width = picture->width;
    head.height = picture->height;
    return write_answer(socket, head, picture->rgb.data(), picture->rgb.size());
  }
  const auto samples = decode_sound(file, order.rate);
  if (!samples) return refuse(socket, samples.error());
  return write_answer(socket, head, samples->data(), std::as_bytes(std::span(*samples)).size());
}

// A picture of one pixel (BMP), and a silence of a fiftieth of a second (WAV) without its samples.
constexpr char kPixel[] =
    "BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0\1\0\0\0\1\0\x18\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\0\0\0\0\1\2\3";
constexpr char kSilence[] = "RIFF\xa4\2\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x80\x3e\0\0\0\x7d\0\0\2\0\x10\0data\x80\2\0";
constexpr std::size_t kSilenceBytes = 640;
static_assert(sizeof kPixel == 58 && sizeof kSilence == 44, "as their heads say");

// A system whose decoders need other calls than the filter allows shows before the server counts on this process.
bool decoders_work() {
  constexpr std::int32_t kRate = 16'000;
  const std::string silence = std::string(kSilence, sizeof kSilence) + std::string(kSilenceBytes, '\0');
  return decode_picture({kPixel, sizeof kPixel}) && decode_sound(silence, kRate);
}

// The server ends one that takes too long; this is for one whose server has been killed.
class AlarmWhileDecoding {
 public:
  AlarmWhileDecoding() { ::alarm(2 * static_cast<unsigned>(kCountLimit<"media_decode_seconds"> / 1000)); }
  ~AlarmWhileDecoding() { ::alarm(0); }
  AlarmWhileDecoding(const AlarmWhileDecoding&) = delete;
  AlarmWhileDecoding& operator=(const AlarmWhileDecoding&) = delete;
};

}  // namespace

bool is_media_decoder(int words, char** line) { return words == 2 && std::string_view(line[1]) == kDecoderWord; }

int run_media_decoder() {
  struct stat input {};
  if (::fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
    std::fprintf(stderr, "chasqui: %s is a part of chasqui serve, which starts it\n", kDecoderWord);
    return 2;
  }
  close_inherited_files();
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // before the server
  // They are sent to all processes of a terminal or a service, and the server goes on for a while: it ends this one.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(number, SIG_IGN);
  const bool filtered = confine_decoder();
  if (!decoders_work()) return 1;
  answer_decode_orders(STDIN_FILENO, filtered);
  ::_exit(0);
}

void answer_decode_orders(int socket, bool filtered) {
  const DecodeAnswer greeting{.width = filtered ? 1u : 0u};
  if (!write_all(socket, &greeting, sizeof greeting)) return;
  DecodeOrder order;
  while (read_exactly(socket, std::as_writable_bytes(std::span(&order, 1))) && is_order(order)) {
    const AlarmWhileDecoding alarm;
    std::string file(order.bytes, '\0');
    if (!read_exactly(socket, std::as_writable_bytes(std::span(file))) || !answer_order(socket, order, file)) return;
  }
}

}  // namespace chasqui
