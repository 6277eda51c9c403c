#include "api/responses.h"

#include <algorithm>
#include <charconv>

#include "api/completions.h"
#include "base/json_writer.h"
#include "base/random_id.h"

namespace chasqui {
namespace {

using Conversation = std::vector<std::shared_ptr<const ChatMessage>>;

Error unknown_response(const std::string& id) {
  return {ErrorCode::not_found, "there is no response with the id " + id + "; it may have expired", ""};
}

// What the model is shown: what came before, behind the instructions of this response.
Result<ConversationPtr> conversation_of(Service& service, const Caller& caller, ResponseAsk& ask) {
  auto conversation = std::make_shared<Conversation>();
  if (ask.previous) {
    const StoredResponse* previous = service.responses.find(caller.tenant.id, *ask.previous, service.clock.now());
    if (previous == nullptr) {
      return invalid_field("previous_response_id",
                           "previous_response_id must be the id of a response that was stored; "
                           "there is none with the id " +
                               *ask.previous);
    }
    if (previous->running) {
      return Error{ErrorCode::conflict, "the previous response is still being made", "previous_response_id"};
    }
    *conversation = *previous->conversation;
  }
  for (ChatMessage& message : ask.chat.messages) {
    // The call whose output this is may have been made in a response before.
    for (const auto& before : *conversation) {
      for (const ToolCall& call : before->tool_calls) {
        if (message.role == "tool" && message.name.empty() && call.id == message.tool_call_id) message.name = call.name;
      }
    }
    conversation->push_back(std::make_shared<const ChatMessage>(std::move(message)));
  }
  return ConversationPtr(std::move(conversation));
}

void fill_chat(ResponseAsk& ask, const Conversation& conversation) {
  ask.chat.messages.clear();
  if (!ask.instructions.empty()) {
    ChatMessage& message = ask.chat.messages.emplace_back();
    message.role = "system";
    message.content = ask.instructions;
  }
  for (const auto& message : conversation) ask.chat.messages.push_back(*message);
}

Result<Caller> caller_of(const Service& service, const net::HttpExchange& exchange) {
  const std::optional<Caller> caller = service.keys.find(exchange.request());
  if (!caller) return Error{ErrorCode::unauthorized, "Invalid API Key", ""};
  return *caller;
}

// Reads the body, and finds the conversation that it goes on with.
net::Awaitable<Result<ConversationPtr>> take_in(Service& service, net::HttpExchange& exchange, Caller caller,
                                                std::optional<ResponseAsk>& ask) {
  net::OffloadTerms terms = reading_terms(caller, exchange);
  auto work = [&service, caller, body = exchange.take_body()]() mutable {
    return read_response_ask(service, caller, std::move(body));
  };
  Result<ResponseAsk> read = co_await service.offload.run(std::move(work), std::move(terms));
  if (!read) co_return read.error();
  ask.emplace(std::move(*read));
  co_return conversation_of(service, caller, *ask);
}

net::Awaitable<Result<Answer>> prepare(Service& service, net::HttpExchange& exchange, Permit& permit,
                                       RequestNotePtr& note) {
  const Result<Caller> caller = caller_of(service, exchange);
  if (!caller) co_return caller.error();
  note = open_note(service, *caller, exchange.request());
  Result<Permit> entered = enter(service, *caller, exchange.request().path, exchange.request().body);
  if (!entered) co_return entered.error();
  permit = std::move(*entered);
  std::optional<ResponseAsk> ask;
  Result<ConversationPtr> conversation = co_await take_in(service, exchange, *caller, ask);
  if (!conversation) co_return conversation.error();

  ResponseHead head;
  head.id = random_id("resp_");
  head.model = service.config.model_name;
  head.created = service.clock.unix_seconds();
  head.echo = std::move(ask->echo);
  head.tenant = caller->tenant.id;
  head.store = ask->store;
  head.before = *conversation;
  head.input_items = std::move(ask->input_items);
  head.input_ids = std::move(ask->input_ids);
  const bool stream = ask->stream;
  std::vector<std::string> skipped = ask->chat.skipped_tools;
  auto work = [&service, ask = std::move(*ask), conversation = *conversation]() mutable {
    fill_chat(ask, *conversation);
    return requests_from_chat(service, ask.chat, std::move(ask.draft));
  };
  net::OffloadTerms terms;
  terms.owner = caller->tenant.id;
  Result<ChatRequests> made = co_await service.offload.run(std::move(work), std::move(terms));
  if (!made) co_return made.error();
  Answer answer;
  answer.stream = stream;
  answer.skipped_tools = std::move(skipped);
  answer.writer = make_response_writer(std::move(head), made->requests.front()->id, std::move(made->format),
                                       service.responses, service.clock, answer.on_submitted);
  answer.request = std::move(made->requests.front());
  co_return answer;
}

net::Awaitable<void> respond(net::HttpExchange& exchange, Result<std::string> answer) {
  if (answer) {
    co_await respond_json(exchange, std::move(*answer));
  } else {
    Error error = answer.error();
    co_await respond_error(exchange, std::move(error));
  }
}

net::Awaitable<Result<std::string>> count(Service& service, net::HttpExchange& exchange) {
  const Result<Caller> caller = caller_of(service, exchange);
  if (!caller) co_return caller.error();
  const Result<Permit> permit = enter_aside(service, *caller);
  if (!permit) co_return permit.error();
  std::optional<ResponseAsk> ask;
  Result<ConversationPtr> conversation = co_await take_in(service, exchange, *caller, ask);
  if (!conversation) co_return conversation.error();
  auto work = [&service, ask = std::move(*ask), conversation = *conversation]() mutable {
    fill_chat(ask, *conversation);
    return prompt_of_chat(service, ask.chat);
  };
  net::OffloadTerms terms;
  terms.owner = caller->tenant.id;
  Result<std::vector<Token>> tokens = co_await service.offload.run(std::move(work), std::move(terms));
  if (!tokens) co_return tokens.error();
  co_return "{\"object\":\"response.input_tokens\",\"input_tokens\":" + std::to_string(tokens->size()) + "}";
}

Result<const StoredResponse*> find(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const std::string& id = exchange.param("id");
  const StoredResponse* found = service.responses.find(caller.tenant.id, id, service.clock.now());
  if (found == nullptr) return unknown_response(id);
  return found;
}

Result<std::size_t> page_size(const net::HttpRequest& request) {
  const auto text = request.query("limit");
  if (!text) return std::size_t{20};
  std::size_t limit = 0;
  const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (failed != std::errc{} || end != text->data() + text->size() || limit < 1 || limit > 100) {
    return invalid_field("limit", "limit must be a whole number between 1 and 100");
  }
  return limit;
}

}  // namespace

net::Awaitable<void> handle_response(Service& service, net::HttpExchange& exchange) {
  Permit permit;
  RequestNotePtr note;
  Result<Answer> answer = co_await prepare(service, exchange, permit, note);
  if (exchange.client_gone()) co_return;
  if (answer) {
    Answer ready = std::move(*answer);
    ready.note = note;
    co_await deliver_answer(service, exchange, std::move(ready), std::move(permit));
    co_return;
  }
  Error error = answer.error();
  note_refused(note, error);
  co_await respond_error(exchange, std::move(error));
}

net::Awaitable<void> handle_response_tokens(Service& service, net::HttpExchange& exchange) {
  Result<std::string> answer = co_await count(service, exchange);
  co_await respond(exchange, std::move(answer));
}

net::Awaitable<void> handle_response_command(Service& service, net::HttpExchange& exchange, ResponseCommand command) {
  const Result<Caller> caller = caller_of(service, exchange);
  Result<std::string> answer = std::string();
  if (caller) {
    answer = command(service, *caller, exchange);
  } else {
    answer = caller.error();
  }
  co_await respond(exchange, std::move(answer));
}

Result<std::string> show_response(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const auto found = find(service, caller, exchange);
  if (!found) return found.error();
  return (*found)->body;
}

Result<std::string> delete_response(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const auto found = find(service, caller, exchange);
  if (!found) return found.error();
  if ((*found)->running) service.streams.cancel(*(*found)->running);
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", (*found)->id);
  json.field("object", "response");
  json.field("deleted", true);
  json.end_object();
  service.responses.erase(caller.tenant.id, exchange.param("id"), service.clock.now());
  return out;
}

Result<std::string> cancel_response(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const auto found = find(service, caller, exchange);
  if (!found) return found.error();
  if ((*found)->running) service.streams.cancel(*(*found)->running);
  return (*found)->body;
}

Result<std::string> list_input_items(Service& service, const Caller& caller, const net::HttpExchange& exchange) {
  const auto found = find(service, caller, exchange);
  if (!found) return found.error();
  const auto limit = page_size(exchange.request());
  if (!limit) return limit.error();
  const auto order = exchange.request().query("order");
  if (order && *order != "asc" && *order != "desc") return invalid_field("order", "order must be asc or desc");
  std::vector<std::string> items = (*found)->input_items;
  std::vector<std::string> ids = (*found)->input_ids;
  if (order != "asc") {
    std::ranges::reverse(items);
    std::ranges::reverse(ids);
  }
  std::size_t first = 0;
  if (const auto after = exchange.request().query("after")) {
    const auto place = std::ranges::find(ids, *after);
    if (place == ids.end()) return invalid_field("after", "after must be the id of an item of this response");
    first = static_cast<std::size_t>(place - ids.begin()) + 1;
  }
  const std::size_t end = std::min(items.size(), first + *limit);
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("object", "list");
  json.key("data");
  json.begin_array();
  for (std::size_t i = first; i < end; ++i) json.raw(items[i]);
  json.end_array();
  for (const bool last : {false, true}) {
    json.key(last ? "last_id" : "first_id");
    if (first < end) {
      json.string(ids[last ? end - 1 : first]);
    } else {
      json.null();
    }
  }
  json.field("has_more", end < items.size());
  json.end_object();
  return out;
}

}  // namespace chasqui
