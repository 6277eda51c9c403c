// Files of sessions, with a checksum that is right: what can be read is written as it was.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/checksum.h"
#include "engine/session_file.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace chasqui;
  constexpr std::size_t kSum = 28, kFields = 44;  // as engine/session_file.cpp has them
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(bytes) + 1;
  std::vector<std::byte> file(begin, begin + size - 1);
  if (bytes[0] % 4 != 0 && file.size() >= kFields) {
    static const std::vector<std::byte> kBase = write_session({}, VocabularyId{});
    std::ranges::copy_n(kBase.begin(), kSum, file.begin());
    // The size of the base: without it little else of a file is looked at.
    const bool sized = bytes[0] % 8 > 3 && file.size() >= kFields + 8;
    for (std::size_t i = 0; sized && i < 8; ++i) file[kFields + i] = static_cast<std::byte>(file.size() >> 8 * i);
    Checksummer sum;
    sum.add(std::span(file).first(kSum));
    sum.add(std::span(file).subspan(kFields));
    std::ranges::copy(sum.result(), file.begin() + kSum);
  }
  const auto read = read_session(file, VocabularyId{}, {1000});
  if (!read || read->foreign) return 0;  // of another model: its tokens are not looked at
  const auto again = read_session(write_session(read->image, VocabularyId{}), VocabularyId{}, {1 << 30});
  must(again.has_value(), "what was read can be written and read again");
  must(again->image.tokens == read->image.tokens && again->image.id == read->image.id, "… and is the same");
  return 0;
}
