#include "jobs/line_reader.h"

#include <utility>

namespace chasqui {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

// Keeps what belongs to the line in the buffer as long as the line may still be short enough.
Result<std::uint64_t> LineReader::find_end() {
  std::uint64_t at = next_.at;
  for (;;) {
    if (holds(at)) {
      const std::size_t found = buffer_.find('\n', static_cast<std::size_t>(at - buffer_at_));
      if (found != std::string::npos) return buffer_at_ + found;
      at = buffer_at_ + buffer_.size();
    }
    if (at >= file_.bytes) return file_.bytes;
    auto piece = read_at(file_, at, kPiece);
    if (!piece) return piece.error();
    if (piece->empty()) return at;  // it became shorter
    const bool keeps = holds(next_.at) && at - next_.at <= line_max_ + 2;
    if (keeps) {
      buffer_.erase(0, static_cast<std::size_t>(next_.at - buffer_at_));
      buffer_at_ = next_.at;
      buffer_ += *piece;
    } else {
      buffer_at_ = at;
      buffer_ = std::move(*piece);
    }
  }
}

Result<std::optional<FileLine>> LineReader::next() {
  while (next_.at < file_.bytes) {
    const auto end = find_end();
    if (!end) return end.error();
    if (*end == next_.at && *end >= file_.bytes) break;
    FileLine line;
    line.place = next_;
    const std::uint64_t begin = next_.at;
    next_ = {next_.number + 1, *end + 1};
    if (*end - begin > line_max_ + 1 || !(begin == *end || holds(begin))) {
      line.too_long = true;
      return std::optional<FileLine>(line);
    }
    if (begin == *end) continue;
    line.text = std::string_view(buffer_).substr(static_cast<std::size_t>(begin - buffer_at_),
                                                 static_cast<std::size_t>(*end - begin));
    if (begin == 0 && line.text.starts_with(kByteOrderMark)) line.text.remove_prefix(kByteOrderMark.size());
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);
    if (line.text.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (line.text.size() > line_max_) {
      line.text = {};
      line.too_long = true;
    }
    return std::optional<FileLine>(line);
  }
  return std::optional<FileLine>();
}

}  // namespace chasqui
