#include "api/body/prompt_forms.h"

#include <algorithm>

#include "api/body/media_intake.h"
#include "core/request.h"

namespace chasqui {

namespace json = boost::json;

namespace {

// The pictures and sounds of {"prompt_string": …, "multimodal_data": […]}; null: `value` is no such object, or has
// none.
const json::value* media_of(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr || !object->contains("prompt_string")) return nullptr;
  const json::value* media = object->if_contains("multimodal_data");
  if (media == nullptr || media->is_null() || (media->is_array() && media->get_array().empty())) return nullptr;
  return media;
}

// With `to` in place of each kMediaMarker; `count` becomes how many there were.
std::string with_markers(std::string_view text, std::string_view to, std::size_t& count) {
  std::string out;
  for (count = 0;; ++count) {
    const std::size_t end = text.find(kMediaMarker);
    out += text.substr(0, end);
    if (end == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(end + kMediaMarker.size());
  }
}

}  // namespace

Result<void> check_prompt_bytes(const ServedModel& served, std::size_t bytes) {
  const std::size_t piece_max = served.model.tokenizer->piece_bytes_max();
  const std::size_t bytes_max = piece_max * static_cast<std::size_t>(served.limits.context);
  if (bytes_max == 0 || bytes <= bytes_max) return {};
  const std::size_t tokens = (bytes - 1) / piece_max + 1;
  return prompt_too_long(tokens, served.limits.context,
                         std::to_string(bytes) + " bytes, at least " + std::to_string(tokens) + " tokens");
}

Result<std::vector<Token>> tokenize_prompt(const ServedModel& served, std::string_view text) {
  if (auto fits = check_prompt_bytes(served, text.size()); !fits) return fits.error();
  return served.model.tokenizer->tokenize(text, AddSpecial::yes, ParseSpecial::yes);
}

Result<MediaPrompt> read_media_text(const ServedModel& served, std::string_view text,
                                    const std::vector<MediaFilePtr>& files, const std::string& name) {
  if (files.empty()) {
    auto tokens = tokenize_prompt(served, text);
    if (!tokens) return tokens.error();
    return MediaPrompt{std::move(*tokens), nullptr};
  }
  const MediaReader* const reader = served.model.media.get();
  if (reader == nullptr) return invalid_field(name, name + " must be text: this model takes no pictures and no sounds");
  if (files.size() > kSizeLimit<"media_files">) {
    return invalid_field(
        name, name + " may have at most " + std::to_string(kSizeLimit<"media_files">) + " pictures and sounds");
  }
  const std::size_t marked = files.size() * reader->marker().size();
  if (auto fits = check_prompt_bytes(served, text.size() - std::min(text.size(), marked)); !fits) return fits.error();
  auto read = reader->read(text, AddSpecial::yes, ParseSpecial::yes, files);
  if (read || read.error().field != "messages") return read;
  return Error{read.error().code, read.error().message, name};
}

Result<std::vector<Token>> read_tokens(const ServedModel& served, const json::array& ids, const std::string& field) {
  std::vector<Token> tokens;
  tokens.reserve(ids.size());
  for (const json::value& id : ids) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() >= served.limits.vocabulary) {
      return invalid_field(field, field + " must be ids between 0 and " + std::to_string(served.limits.vocabulary - 1));
    }
    tokens.push_back(static_cast<Token>(id.get_int64()));
  }
  return tokens;
}

bool is_one_prompt(const json::value& value) {
  const json::array* list = value.if_array();
  if (list == nullptr || list->empty()) return true;
  return std::ranges::any_of(*list, [](const json::value& item) { return item.is_number(); });
}

std::size_t text_bytes(const json::array& items) {
  std::size_t bytes = 0;
  for (const json::value& item : items) bytes += item.is_string() ? item.get_string().size() : 0;
  return bytes;
}

Result<const json::value*> prompt_text(const json::value& value, const std::string& name) {
  const json::object* object = value.if_object();
  const json::value* text = object != nullptr ? object->if_contains("prompt_string") : nullptr;
  if (text == nullptr) return &value;
  const std::string path = name + ".prompt_string";
  if (!text->is_string()) return invalid_field(path, path + " must be a string");
  if (media_of(value) == nullptr) return text;
  const std::string media_path = name + ".multimodal_data";
  return invalid_field(media_path, media_path + " must be empty: this route takes text alone");
}

Result<std::vector<Token>> tokenize_mixed(const ServedModel& served, const json::array& items, const std::string& name,
                                          AddSpecial add, ParseSpecial parse) {
  // Each text is tokenized by itself, so that many short ones take longer than a long one.
  if (items.size() > static_cast<std::size_t>(served.limits.context)) {
    return prompt_too_long(items.size(), served.limits.context, std::to_string(items.size()) + " texts and tokens");
  }
  std::vector<Token> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const json::value& item = items[i];
    if (item.is_string()) {
      const AddSpecial here = i == 0 ? add : AddSpecial::no;
      const auto tokens = served.model.tokenizer->tokenize(std::string_view(item.get_string()), here, parse);
      out.insert(out.end(), tokens.begin(), tokens.end());
    } else if (item.is_int64() && item.get_int64() >= 0 && item.get_int64() < served.limits.vocabulary) {
      out.push_back(static_cast<Token>(item.get_int64()));
    } else {
      return invalid_field(
          name, name + " must be texts and ids between 0 and " + std::to_string(served.limits.vocabulary - 1));
    }
  }
  return out;
}

Result<std::vector<Token>> read_prompt(const ServedModel& served, const json::value& value, const std::string& name) {
  const auto text = prompt_text(value, name);
  if (!text) return text.error();
  if ((*text)->is_string()) return tokenize_prompt(served, std::string_view((*text)->get_string()));
  const json::array* items = (*text)->if_array();
  if (items == nullptr || !is_one_prompt(**text)) {
    return invalid_field(name, name + " must be a string, an array of token ids and strings, or an array of those");
  }
  const bool mixed = std::ranges::any_of(*items, [](const json::value& item) { return item.is_string(); });
  if (!mixed) return read_tokens(served, *items, name);
  if (auto fits = check_prompt_bytes(served, text_bytes(*items)); !fits) return fits.error();
  return tokenize_mixed(served, *items, name, AddSpecial::yes, ParseSpecial::yes);
}

Result<MediaPrompt> read_media_prompt(const ServedModel& served, const json::value& value, const std::string& name) {
  const json::value* const media = media_of(value);
  if (media == nullptr) {
    auto tokens = read_prompt(served, value, name);
    if (!tokens) return tokens.error();
    return MediaPrompt{std::move(*tokens), nullptr};
  }
  const std::string path = name + ".multimodal_data";
  const json::value& text = value.get_object().at("prompt_string");
  if (!text.is_string()) return invalid_field(name + ".prompt_string", name + ".prompt_string must be a string");
  if (!media->is_array()) return invalid_field(path, path + " must be an array of files as base64");
  MediaIntake intake(served.model.media.get());
  std::vector<MediaFilePtr> files;
  for (const json::value& one : media->get_array()) {
    auto file = intake.take_file(one, path + '[' + std::to_string(files.size()) + ']');
    if (!file) return file.error();
    files.push_back(std::move(*file));
  }
  std::size_t marks = 0;
  const std::string marked = with_markers(text.get_string(), served.model.media->marker(), marks);
  if (marks != files.size()) {
    return invalid_field(path, path + " must have a file for each " + std::string(kMediaMarker) +
                                   " in prompt_string: it has " + std::to_string(files.size()) + ", there are " +
                                   std::to_string(marks) + " of those");
  }
  return read_media_text(served, marked, files, name);
}

}  // namespace chasqui
