#include "cli/chat_stream.h"

#include <utility>

#include <boost/json.hpp>

namespace chasqui::cli {
namespace {

namespace json = boost::json;

const json::value* find(const json::value* from, std::string_view name) {
  const json::object* object = from == nullptr ? nullptr : from->if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::string_view text_of(const json::value* value) {
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

void take_number(const json::value* value, std::int64_t& into) {
  boost::system::error_code error;
  if (value == nullptr) return;
  const auto number = value->to_number<std::int64_t>(error);
  if (!error && number >= 0) into = number;
}

}  // namespace

void ChatStream::feed(std::string_view bytes) {
  while (!bytes.empty() && failure_.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      kept_ += bytes;
      if (kept_.size() > kLineMax) failure_ = "a line of the stream is too long";
      return;
    }
    kept_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(kept_, "");
    take_line(line);
  }
}

void ChatStream::take_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return;  // comments, names of events, ends of frames
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    done_ = true;
  } else {
    take_json(line);
  }
}

void ChatStream::take_json(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) {
    failure_ = "the stream has something that is no JSON";
    return;
  }
  if (const json::value* said = find(&value, "error"); said != nullptr && !said->is_null()) {
    failure_ = text_of(find(said, "message"));
    if (failure_.empty()) failure_ = "the server ended the answer with an error";
    return;
  }
  const json::value* usage = find(&value, "usage");
  take_number(find(usage, "prompt_tokens"), report_.prompt_tokens);
  take_number(find(usage, "completion_tokens"), report_.completion_tokens);
  take_number(find(find(usage, "prompt_tokens_details"), "cached_tokens"), report_.cached_tokens);
  const json::value* choices = find(&value, "choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return;
  const json::value* choice = &choices->get_array().front();
  if (const auto reason = text_of(find(choice, "finish_reason")); !reason.empty()) report_.finish_reason = reason;
  const json::value* delta = find(choice, "delta");
  if (const auto thought = text_of(find(delta, "reasoning_content")); !thought.empty()) sinks_.reasoning(thought);
  if (const auto piece = text_of(find(delta, "content")); !piece.empty()) {
    report_.text += piece;
    sinks_.text(piece);
  }
}

}  // namespace chasqui::cli
