// Takes the pictures and sounds out of one body, in whatever dialect it is: files written as base64, as data URLs, or
// named where the operator allows it (api/body/media_folder), go to their message, and MediaReader::marker() stands for
// each in its text. Looks at nothing but their number and their size: what is in them is the reader's to say. One
// thread, while one body is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/body/fields.h"
#include "model/chat_template.h"
#include "model/media_reader.h"

namespace chasqui {

class MediaIntake {
 public:
  // Null: every file is refused, since the model reads text alone. Empty `folder`: no files are named. `reader`
  // outlives this.
  explicit MediaIntake(const MediaReader* reader, const std::string& folder = {}) : reader_(reader), folder_(folder) {}

  // Types of OpenAI's parts: {"type":"image_url","image_url":{"url":…}}, {"type":"input_image","image_url":…} and
  // {"type":"input_audio","input_audio":{"data":…,"format":…}}.
  static bool is_part(std::string_view type);
  // Adds the file of such a part, or of Anthropic's {"type":"image","source":{…}}, to the message. `path` is what
  // errors call the part; they are the field's where it is known.
  std::optional<Error> take_part(std::string_view type, const boost::json::object& part, const std::string& path,
                                 ChatMessage& message);
  std::optional<Error> take_block(const boost::json::object& block, const std::string& path, ChatMessage& message);
  // Ollama's pictures, which are an array of base64.
  std::optional<Error> take_images(const boost::json::array& images, const std::string& path, ChatMessage& message);
  // A file that does not say what it is; with `only`, one that has to be of that kind.
  Result<MediaFilePtr> take_file(const boost::json::value& text, const std::string& path,
                                 std::optional<MediaKind> only = std::nullopt);

  // Where the message has files: its content becomes all its parts, as llama-server writes them, with a line break
  // between texts and none beside a file.
  void join_parts(ChatMessage& message) const;

 private:
  Result<void> may_take(MediaKind kind, const std::string& path) const;
  // base64 in `text`, a data URL, or the address of a file. `part`: what has it, for errors that are not about `path`.
  std::optional<Error> add(std::string_view text, MediaKind kind, const std::string& part, const std::string& path,
                           ChatMessage& message);
  std::optional<Error> take_image_url(const boost::json::object& part, const std::string& path, ChatMessage& message);
  std::optional<Error> take_audio(const boost::json::object& part, const std::string& path, ChatMessage& message);

  Result<std::string> bytes_in(std::string_view text, MediaKind kind, const std::string& path);

  const MediaReader* const reader_;
  const std::string folder_;
  std::size_t files_ = 0;
  std::size_t named_bytes_ = 0;  // of files that were named instead of sent
};

// Fills Chat::media from its messages.
void collect_media(Chat& chat);

}  // namespace chasqui
