#include "api/body/media_intake.h"

#include <algorithm>

#include "api/body/media_folder.h"
#include "base/ascii.h"
#include "base/base64.h"
#include "base/limits.h"

namespace chasqui {
namespace {

namespace json = boost::json;

std::string_view plural(MediaKind kind) { return kind == MediaKind::picture ? "pictures" : "sounds"; }

// "https" of "https://…"; empty where it is no address.
std::string_view scheme_of(std::string_view text) {
  constexpr std::size_t kSchemeMax = 16;
  const std::size_t end = text.substr(0, kSchemeMax).find(':');
  return end != std::string_view::npos ? text.substr(0, end) : std::string_view();
}

std::string no_data_url(const std::string& path, MediaKind kind) {
  const std::string_view example = kind == MediaKind::picture ? "data:image/png;base64,…" : "data:audio/wav;base64,…";
  return path + " must be a data URL, such as " + std::string(example);
}

// The base64 in `text`, which may be all of it.
Result<std::string_view> base64_in(std::string_view text, MediaKind kind, const std::string& path) {
  const std::string_view scheme = scheme_of(text);
  if (scheme.empty()) return text;
  if (!equals_ignoring_case(scheme, "data")) {
    const bool of_the_web = equals_ignoring_case(scheme, "https") || equals_ignoring_case(scheme, "http");
    const std::string_view unless = of_the_web                      ? ", unless --media-url-hosts names the host"
                                    : equals_ignoring_case(scheme, "file") ? ", unless --media-path has them"
                                                                    : "";
    return invalid_field(path, no_data_url(path, kind) + "; files are not fetched from " + std::string(scheme) + ':' +
                                   std::string(unless));
  }
  const std::size_t comma = text.substr(0, kSizeLimit<"media_type_bytes">).find(',');
  if (comma == std::string_view::npos) return invalid_field(path, no_data_url(path, kind));
  const std::string_view head = text.substr(0, comma).substr(scheme.size() + 1);
  constexpr std::string_view kBase64 = ";base64";
  const std::string_view type = kind == MediaKind::picture ? "image/" : "audio/";
  const bool right_kind = equals_ignoring_case(head.substr(0, type.size()), type);
  const bool encoded =
      head.size() >= kBase64.size() && equals_ignoring_case(head.substr(head.size() - kBase64.size()), kBase64);
  if (!right_kind || !encoded) return invalid_field(path, no_data_url(path, kind));
  return text.substr(comma + 1);
}

// As mtmd tells sounds from pictures; what is neither is refused by whichever reads it.
MediaKind kind_of(std::string_view bytes) {
  const bool wave = bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WAVE");
  const bool mpeg =
      bytes.starts_with("ID3") || (bytes.starts_with('\xff') && bytes.size() > 1 && (bytes[1] & 0xe0) == 0xe0);
  const bool sound = wave || bytes.starts_with("fLaC") || (mpeg && !bytes.starts_with("\xff\xd8"));
  return sound ? MediaKind::sound : MediaKind::picture;
}

Result<std::string> decode(std::string_view text, const std::string& path) {
  constexpr std::size_t kMost = kSizeLimit<"media_bytes">;
  if (text.size() / 4 * 3 > kMost) {
    return invalid_field(path, path + " must be a file of at most " + std::to_string(kMost) + " bytes");
  }
  auto bytes = decode_base64(text);
  if (!bytes || bytes->empty()) {
    return invalid_field(path, path + " must be a file as base64: letters, digits, + and /, = at its end, no blanks");
  }
  return std::move(*bytes);
}

}  // namespace

bool MediaIntake::is_part(std::string_view type) {
  return type == "image_url" || type == "input_image" || type == "input_audio";
}

Result<void> MediaIntake::may_take(MediaKind kind, const std::string& path) const {
  if (reader_ == nullptr) {
    return invalid_field(
        path, path + ": this model takes no " + std::string(plural(kind)) + "; start the server with --mmproj FILE");
  }
  if (!reader_->takes(kind)) {
    return invalid_field(path, path + ": this model takes no " + std::string(plural(kind)));
  }
  if (files_ < kSizeLimit<"media_files">) return {};
  return invalid_field(path, path + ": a request may have at most " + std::to_string(kSizeLimit<"media_files">) +
                                 " pictures and sounds");
}

Result<std::string> MediaIntake::bytes_in(std::string_view text, MediaKind kind, const std::string& path) {
  constexpr std::string_view kFile = "file://";
  if (!folder_.empty() && equals_ignoring_case(text.substr(0, kFile.size()), kFile)) {
    constexpr std::size_t kMost = kSizeLimit<"body_bytes">;
    auto bytes = read_from_media_folder(folder_, text.substr(kFile.size()), path);
    if (bytes) named_bytes_ += bytes->size();
    if (named_bytes_ <= kMost) return bytes;
    return invalid_field(
        path, path + ": the files that a request names have at most " + std::to_string(kMost) + " bytes together");
  }
  const auto letters = base64_in(text, kind, path);
  if (!letters) return letters.error();
  return decode(*letters, path);
}

std::optional<Error> MediaIntake::add(std::string_view text, MediaKind kind, const std::string& part,
                                      const std::string& path, ChatMessage& message) {
  if (auto may = may_take(kind, part); !may) return may.error();
  auto bytes = bytes_in(text, kind, path);
  if (!bytes) return bytes.error();
  ++files_;
  message.parts.emplace_back(reader_->marker());
  message.media.push_back(std::make_shared<const MediaFile>(MediaFile{kind, std::move(*bytes)}));
  return std::nullopt;
}

std::optional<Error> MediaIntake::take_part(std::string_view type, const json::object& part, const std::string& path,
                                            ChatMessage& message) {
  return type == "input_audio" ? take_audio(part, path, message) : take_image_url(part, path, message);
}

// Some clients write the address alone where others have an object around it.
std::optional<Error> MediaIntake::take_image_url(const json::object& part, const std::string& path,
                                                 ChatMessage& message) {
  if (auto may = may_take(MediaKind::picture, path); !may) return may.error();
  Fields fields(part, path);
  if (fields.any("file_id") != nullptr) {
    fields.refuse("file_id", "left out: give the picture as a data URL in image_url");
    return fields.error();
  }
  const json::value* given = fields.any("image_url");
  const json::object* object = given != nullptr ? given->if_object() : nullptr;
  Fields inner(object != nullptr ? *object : part, object != nullptr ? fields.path_of("image_url") : path);
  const std::string_view name = object != nullptr ? "url" : "image_url";
  const auto url = inner.string(name);
  if (!url) inner.refuse(name, "a data URL");
  inner.string("detail");
  if (!inner.ok()) return inner.error();
  return add(*url, MediaKind::picture, path, inner.path_of(name), message);
}

std::optional<Error> MediaIntake::take_audio(const json::object& part, const std::string& path, ChatMessage& message) {
  if (auto may = may_take(MediaKind::sound, path); !may) return may.error();
  Fields fields(part, path);
  const json::object* object = fields.object("input_audio");
  if (object == nullptr) fields.refuse("input_audio", "an object with data and format");
  if (!fields.ok()) return fields.error();
  Fields audio(*object, fields.path_of("input_audio"));
  const auto data = audio.string("data");
  const auto format = audio.string("format");
  if (!data) audio.refuse("data", "a file as base64");
  if (format && *format != "wav" && *format != "mp3" && *format != "flac") audio.refuse("format", "wav, mp3 or flac");
  if (!audio.ok()) return audio.error();
  return add(*data, MediaKind::sound, path, audio.path_of("data"), message);
}

std::optional<Error> MediaIntake::take_block(const json::object& block, const std::string& path, ChatMessage& message) {
  if (auto may = may_take(MediaKind::picture, path); !may) return may.error();
  Fields fields(block, path);
  const json::object* object = fields.object("source");
  if (object == nullptr) fields.refuse("source", "an object with type, media_type and data");
  if (!fields.ok()) return fields.error();
  Fields source(*object, fields.path_of("source"));
  const std::string_view type = source.string("type").value_or("");
  if (type == "url") {
    const auto url = source.string("url");
    if (!url) source.refuse("url", "a data URL");
    if (!source.ok()) return source.error();
    return add(*url, MediaKind::picture, path, source.path_of("url"), message);
  }
  if (type != "base64") source.refuse("type", "base64, or url with a data URL");
  const auto media_type = source.string("media_type");
  if (media_type && !media_type->starts_with("image/")) source.refuse("media_type", "that of a picture, as image/png");
  const auto data = source.string("data");
  if (!data) source.refuse("data", "a file as base64");
  if (!source.ok()) return source.error();
  return add(*data, MediaKind::picture, path, source.path_of("data"), message);
}

std::optional<Error> MediaIntake::take_images(const json::array& images, const std::string& path,
                                              ChatMessage& message) {
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::string place = path + '[' + std::to_string(i) + ']';
    if (!images[i].is_string()) return invalid_field(place, place + " must be a file as base64");
    if (auto error = add(images[i].get_string(), MediaKind::picture, place, place, message)) return error;
  }
  return std::nullopt;
}

Result<MediaFilePtr> MediaIntake::take_file(const json::value& text, const std::string& path,
                                            std::optional<MediaKind> only) {
  if (reader_ == nullptr) return may_take(only.value_or(MediaKind::picture), path).error();
  if (!text.is_string()) return invalid_field(path, path + " must be a file as base64");
  auto bytes = decode(text.get_string(), path);
  if (!bytes) return bytes.error();
  const MediaKind kind = kind_of(*bytes);
  if (auto may = may_take(only.value_or(kind), path); !may) return may.error();
  if (kind != only.value_or(kind)) {
    return invalid_field(path, path + (only == MediaKind::sound ? " must be a sound: WAV, MP3 or FLAC"
                                                                : " must be a picture: PNG or JPEG"));
  }
  ++files_;
  return std::make_shared<const MediaFile>(MediaFile{kind, std::move(*bytes)});
}

void MediaIntake::join_parts(ChatMessage& message) const {
  if (message.media.empty()) return;
  std::string content;
  bool behind_file = false;
  for (const std::string& part : message.parts) {
    const bool file = part == reader_->marker();
    if (!file && !behind_file && !content.empty()) content += '\n';
    content += part;
    behind_file = file;
  }
  message.content = std::move(content);
  message.parts.clear();
}

void collect_media(Chat& chat) {
  chat.media.clear();
  for (const ChatMessage& message : chat.messages) {
    chat.media.insert(chat.media.end(), message.media.begin(), message.media.end());
  }
}

}  // namespace chasqui
