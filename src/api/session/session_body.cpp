#include "api/session/session_body.h"

#include <algorithm>

#include "api/body/generation_fields.h"
#include "api/body/prompt.h"
#include "api/core/key_ring.h"
#include "base/json_writer.h"
#include "engine/session_table.h"

namespace chasqui {
namespace {

namespace json = boost::json;

// Where everything may be left out, so may the body.
Result<json::object> parse_optional_object(const std::string& body) {
  if (body.find_first_not_of(" \t\r\n") == std::string::npos) return json::object();
  return parse_json_object(body);
}

// The names under which input comes; one of them at a time.
constexpr std::string_view kInputs[] = {"messages", "message", "text", "tokens", "prompt"};

std::string_view input_name(Fields& fields) {
  std::string_view found;
  for (const std::string_view name : kInputs) {
    if (fields.any(name) == nullptr) continue;
    if (!found.empty()) fields.refuse(name, "left out beside " + std::string(found));
    found = name;
  }
  return found;
}

Result<SessionDelta> read_chat_input(const ServedModel& served, Fields& fields, std::string_view name,
                                     const SessionInput& input) {
  std::vector<ChatMessage> messages;
  MediaIntake media(served.model.media.get(), served.config.defaults.media_folder);
  if (name == "messages") {
    messages = read_messages(fields, name, media);
  } else if (auto error = read_message(*fields.any(name), std::string(name), media, messages.emplace_back())) {
    return *error;
  }
  if (!fields.ok()) return fields.error();
  if (auto error = check_calls(messages)) return *error;
  // A stored session keeps the text only, and has to be written the same after a restart.
  for (ChatMessage& message : messages) message.parts.clear();
  std::vector<Tool> tools = read_tools(fields, nullptr);
  if (fields.string("tool_choice") == "none") tools.clear();
  if (!fields.ok()) return fields.error();
  return input.from_messages(std::move(messages), std::move(tools));
}

Result<SessionDelta> read_token_input(const ServedModel& served, const json::value& ids, std::string_view name,
                                      const SessionInput& input) {
  auto tokens = read_tokens(served, ids.get_array(), std::string(name));
  if (!tokens) return tokens.error();
  return input.from_tokens(std::move(*tokens));
}

// REQUIRES: `name` is there, and one of kInputs
Result<SessionDelta> read_input(const ServedModel& served, Fields& fields, std::string_view name,
                                const SessionInput& input) {
  if (name == "messages" || name == "message") return read_chat_input(served, fields, name, input);
  const bool parse = fields.boolean("parse_special").value_or(false);
  if (fields.any("tools") != nullptr) fields.refuse("tools", "left out: they go with messages");
  const json::value& value = *fields.any(name);
  const bool may_be_text = name != "tokens";
  const bool may_be_tokens = name != "text";
  if (value.is_array() && may_be_tokens && fields.ok()) return read_token_input(served, value, name, input);
  if (!value.is_string() || !may_be_text) {
    const std::string_view both = may_be_text ? "a string or an array of token ids" : "an array of token ids";
    fields.refuse(name, may_be_tokens ? both : "a string");
  }
  if (!fields.ok()) return fields.error();
  return input.from_text(value.get_string(), parse ? ParseSpecial::yes : ParseSpecial::no);
}

SessionSettings read_settings(const ServedModel& served, const Caller& caller, const SessionLimits& limits,
                              Fields& fields) {
  SessionSettings settings;
  settings.ttl = limits.ttl;
  settings.created = served.clock.unix_seconds();
  const double ttl_max = to_seconds(limits.ttl_max);
  if (const auto ttl = fields.number("ttl_s")) {
    if (*ttl >= 1 && *ttl <= ttl_max) {
      settings.ttl = from_seconds(*ttl);
    } else {
      fields.refuse("ttl_s", "a number between 1 and " + std::to_string(static_cast<std::int64_t>(ttl_max)));
    }
  }
  settings.service_class = std::max(read_class(fields, caller.service_class), caller.most_urgent);
  return settings;
}

std::string_view kind_of(const Session& session) {
  if (session.chat) return "chat";
  return session.tokens.empty() ? "empty" : "text";
}

void write_session(JsonWriter& json, const ServedModel& served, const Session& session) {
  const TimePoint now = served.clock.now();
  const auto left = std::chrono::floor<seconds>(session.expires(now) - now).count();
  json.begin_object();
  json.field("id", session.id.text);
  json.field("object", "session");
  json.field("created", session.settings.created);
  json.field("kind", kind_of(session));
  json.field("state", name(session.state));
  json.field("tokens", session.length());
  json.field("tokens_max", served.sessions.limits().tokens);
  json.field("messages", session.chat ? session.chat->messages.size() : 0);
  json.field("files", session.chat ? session.chat->files : 0);
  json.field("priority", name(session.settings.service_class));
  json.field("ttl_s", to_seconds(session.settings.ttl));
  json.field("expires_at", served.clock.unix_seconds() + left);
  json.end_object();
}

}  // namespace

SessionTail tail_of(const SessionTable& table, const Session& session) {
  return {session.length(), table.limits().tokens, session.chat};
}

Result<NewSession> read_new_session(const ServedModel& served, const Caller& caller, const SessionLimits& limits,
                                    const std::string& body) {
  auto object = parse_optional_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  NewSession out;
  out.settings = read_settings(served, caller, limits, fields);
  const std::string_view name = input_name(fields);
  if (!fields.ok()) return fields.error();
  if (name.empty()) return out;
  auto begin = read_input(served, fields, name, {served.model, SessionTail{0, limits.tokens, nullptr}});
  if (!begin) return begin.error();
  out.begin = std::move(*begin);
  return out;
}

Result<SessionDelta> read_append(const ServedModel& served, const SessionTail& tail, const std::string& body) {
  auto object = parse_json_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  const std::string_view name = input_name(fields);
  if (!fields.ok()) return fields.error();
  if (name.empty()) {
    return Error{ErrorCode::invalid_request, "there is nothing to append: give message, messages, text or tokens", ""};
  }
  return read_input(served, fields, name, {served.model, tail});
}

Result<SessionAsk> read_session_ask(const ServedModel& served, const Caller& caller, const SessionTail& tail,
                                    ServiceClass service_class, const std::string& body) {
  auto object = parse_optional_object(body);
  if (!object) return object.error();
  Fields fields(*object);
  for (const std::string_view name : kInputs) {
    if (fields.any(name) != nullptr) fields.refuse(name, "left out: append it first");
  }
  RequestDraft draft = new_draft(served, caller);
  draft.service_class = service_class;
  SessionAsk out;
  for (const std::string_view name : {"n", "n_cmpl", "best_of"}) {
    if (fields.integer(name).value_or(1) != 1) fields.refuse(name, "1: a session has one history");
  }
  out.common = read_openai_body(served, caller, fields, tail.chat ? "chatcmpl-" : "cmpl-", std::move(draft));
  refuse_unsupported(fields, {"echo", "suffix"});
  if (!fields.ok()) return fields.error();
  if (auto ready = prepare_sampling(served, out.common.draft); !ready) return ready.error();
  const SessionInput input(served.model, tail);
  auto before = input.before_answer();
  if (!before) return before.error();
  out.before_answer = std::move(*before);
  auto units = input.units();
  if (!units) return units.error();
  out.units = std::move(*units);
  return out;
}

std::string session_body(const ServedModel& served, const Session& session) {
  std::string out;
  JsonWriter json(out);
  write_session(json, served, session);
  return out;
}

std::string session_list_body(const ServedModel& served, const std::vector<const Session*>& sessions, bool more) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("object", "list");
  json.begin_array("data");
  for (const Session* session : sessions) write_session(json, served, *session);
  json.end_array();
  json.field("has_more", more);
  json.end_object();
  return out;
}

std::string session_deleted_body(const SessionId& id) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", id.text);
  json.field("object", "session.deleted");
  json.field("deleted", true);
  json.end_object();
  return out;
}

}  // namespace chasqui
