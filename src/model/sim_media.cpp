#include "model/sim_media.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random_id.h"

namespace chasqui {
namespace {

bool begins_as(std::string_view bytes, MediaKind kind) {
  const auto begins = [bytes](std::string_view with) { return bytes.starts_with(with); };
  if (kind == MediaKind::picture) return begins("\x89PNG\r\n\x1a\n") || begins("\xff\xd8\xff");
  const bool wave = begins("RIFF") && bytes.substr(0, 12).ends_with("WAVE");
  return wave || begins("ID3") || begins("\xff\xfb") || begins("fLaC");
}

Result<MediaUnit> unit_of(const MediaFile& file, std::size_t index) {
  const bool picture = file.kind == MediaKind::picture;
  if (!begins_as(file.bytes, file.kind)) {
    const std::string what = picture ? "a PNG or JPEG picture" : "a WAV, MP3 or FLAC sound";
    return invalid_field("messages", "messages: file " + std::to_string(index + 1) + " must be " + what);
  }
  MediaUnit unit;
  unit.kind = file.kind;
  unit.identity = checksum(std::as_bytes(std::span(file.bytes)));
  unit.positions = SimMedia::kPositions;
  return unit;
}

}  // namespace

std::string_view SimMedia::marker() const {
  static const std::string marker = random_id("<__media_") + "__>";
  return marker;
}

Result<MediaPrompt> SimMedia::read(std::string_view text, AddSpecial add, ParseSpecial parse,
                                   std::span<const MediaFilePtr> files) const {
  MediaPrompt out;
  MediaUnits units;
  for (;;) {
    const std::size_t end = std::min(text.find(marker()), text.size());
    const AddSpecial here = units.empty() ? add : AddSpecial::no;
    const auto tokens = tokenizer_->tokenize(text.substr(0, end), here, parse);
    out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
    if (end == text.size()) break;
    text.remove_prefix(end + marker().size());
    if (units.size() == files.size()) return invalid_field("messages", "the template has doubled a picture or sound");
    auto unit = unit_of(*files[units.size()], units.size());
    if (!unit) return unit.error();
    unit->begin = static_cast<TokenCount>(out.tokens.size());
    for (TokenCount i = 0; i < unit->positions; ++i) out.tokens.push_back(media_token(unit->identity, i));
    units.push_back(std::move(*unit));
  }
  if (units.size() < files.size()) return invalid_field("messages", "the template has left out a picture or sound");
  if (!units.empty()) out.units = std::make_shared<const MediaUnits>(std::move(units));
  return out;
}

}  // namespace chasqui
