#include "cli/conversation.h"

#include <boost/json.hpp>

#include "base/json_writer.h"

namespace chasqui::cli {
namespace {

namespace json = boost::json;

ChatMessage message(std::string role, std::string text) {
  ChatMessage out;
  out.role = std::move(role);
  out.content = std::move(text);
  return out;
}

Error bad_file(const std::string& why) { return invalid_field("messages", "not a saved conversation: " + why); }

const std::string* text_of(const json::object& object, std::string_view name, std::string& kept) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || !value->is_string()) return nullptr;
  kept.assign(value->get_string().data(), value->get_string().size());
  return &kept;
}

}  // namespace

void Conversation::set_system(std::string text) {
  system_ = std::move(text);
  ++revision_;
}

void Conversation::ask(std::string text) { turns_.push_back(message("user", std::move(text))); }

void Conversation::answered(std::string text) { turns_.push_back(message("assistant", std::move(text))); }

void Conversation::take_back() {
  if (!turns_.empty()) turns_.pop_back();
  ++revision_;
}

void Conversation::clear() {
  turns_.clear();
  ++revision_;
}

std::vector<ChatMessage> Conversation::messages() const {
  std::vector<ChatMessage> out;
  if (!system_.empty()) out.push_back(message("system", system_));
  out.insert(out.end(), turns_.begin(), turns_.end());
  return out;
}

std::string Conversation::to_json() const {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  w.begin_array("messages");
  for (const ChatMessage& m : messages()) {
    w.begin_object();
    w.field("role", m.role);
    w.field("content", m.content);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return out + "\n";
}

Result<void> Conversation::from_json(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  if (error) return bad_file("it is no JSON (" + error.message() + ")");
  const json::object* object = value.if_object();
  const json::value* list = object == nullptr ? nullptr : object->if_contains("messages");
  if (list == nullptr || !list->is_array()) return bad_file("there is no list \"messages\"");
  Conversation read;
  for (const json::value& item : list->get_array()) {
    std::string role, content;
    const json::object* fields = item.if_object();
    if (fields == nullptr || text_of(*fields, "role", role) == nullptr ||
        text_of(*fields, "content", content) == nullptr)
      return bad_file("each message needs the texts \"role\" and \"content\"");
    if (role == "system" && read.turns_.empty() && read.system_.empty()) {
      read.system_ = std::move(content);
    } else if (role == "user" || role == "assistant") {
      read.turns_.push_back(message(std::move(role), std::move(content)));
    } else {
      return bad_file("the role \"" + role + "\" must be user or assistant, or system at the beginning");
    }
  }
  read.revision_ = revision_ + 1;
  *this = std::move(read);
  return {};
}

}  // namespace chasqui::cli
