#include "api/openai/responses.h"

#include <algorithm>

#include "api/body/media_links.h"
#include "api/body/tool_call_names.h"
#include "api/core/entry.h"
#include "api/core/frontend.h"
#include "api/core/generation.h"
#include "api/core/key_ring.h"
#include "api/core/list_page.h"
#include "api/core/model_table.h"
#include "api/core/reading_time.h"
#include "api/delivery/delivery.h"
#include "api/openai/response_store.h"
#include "base/json_writer.h"
#include "base/random_id.h"
#include "net/offload.h"

namespace chasqui {
namespace {

Error unknown_response(const std::string& id) {
  return {ErrorCode::not_found, "there is no response with the id " + id + "; it may have expired", ""};
}

// What the response goes on with; empty where it begins a conversation.
Result<ConversationPtr> conversation_before(ServedModel& served, const Caller& caller, const ResponseAsk& ask) {
  if (!ask.previous) return ConversationPtr(std::make_shared<Conversation>());
  const StoredResponse* previous = served.responses.find({caller.tenant.id, *ask.previous}, served.clock.now());
  if (previous == nullptr) {
    return invalid_field("previous_response_id",
                         "previous_response_id must be the id of a response that was stored; "
                         "there is none with the id " +
                             *ask.previous);
  }
  if (previous->running) {
    return Error{ErrorCode::conflict, "the previous response is still being made", "previous_response_id"};
  }
  return previous->conversation;
}

// The responses that have made these items, which are sorted: to sort thousands here would hold the loop.
Result<ResponseBodies> bodies_of(ServedModel& served, const Caller& caller, const std::vector<std::string>& items) {
  std::vector<bool> seen(items.size(), false);
  ResponseBodies out;
  served.responses.each_of(caller.tenant.id, served.clock.now(), [&](const StoredResponse& stored) {
    if (stored.running) return;
    bool wanted = false;
    for (const std::string& id : stored.output_ids) {
      const auto place = std::ranges::lower_bound(items, id);
      if (place == items.end() || *place != id) continue;
      const auto index = static_cast<std::size_t>(place - items.begin());
      wanted = wanted || !seen[index];
      seen[index] = true;
    }
    if (wanted) out.push_back(stored.body);
  });
  const auto missing = std::ranges::find(seen, false);
  if (missing == seen.end()) return out;
  return Error{ErrorCode::not_found,
               "input: there is no item with the id " + items[static_cast<std::size_t>(missing - seen.begin())] +
                   " in a response that was stored; it may have expired",
               "input"};
}

// What came before, and what the client says now. Offload pool.
ConversationPtr joined(const Conversation& before, std::vector<ChatMessage> messages) {
  auto conversation = std::make_shared<Conversation>(before);
  ToolCallNames calls;
  const auto note_calls = [&calls](const ChatMessage& message) {
    for (const ToolCall& call : message.tool_calls) calls.add(call.id, call.name);
  };
  for (const auto& message : before) note_calls(*message);
  for (ChatMessage& message : messages) {
    // The call whose output this is may have been made in a response before.
    if (message.role == "tool" && message.name.empty()) message.name = calls.of(message.tool_call_id);
    note_calls(message);
    conversation->push_back(std::make_shared<const ChatMessage>(std::move(message)));
  }
  return conversation;
}

// What the model is shown: all of it, behind the instructions of this response.
void fill_chat(ResponseAsk& ask, const Conversation& conversation) {
  ask.chat.messages.clear();
  if (!ask.instructions.empty()) {
    ChatMessage& message = ask.chat.messages.emplace_back();
    message.role = "system";
    message.content = ask.instructions;
  }
  for (const auto& message : conversation) ask.chat.messages.push_back(*message);
  collect_media(ask.chat);
}

// A body that was read, and how its conversation is to be rendered.
struct ReadAsk {
  ResponseAsk ask;
  ConversationPtr before;
  net::OffloadTerms terms;
};

net::Awaitable<Result<ReadAsk>> read_ask(Call& call) {
  if (may_link_media(call.frontend, call.served)) {
    Result<void> brought = co_await bring_linked_media(call);
    if (!brought) co_return brought.error();
  }
  net::OffloadTerms terms = reading_terms(call);
  net::OffloadTerms rendering = terms;
  auto work = [&served = call.served, caller = call.caller, body = std::move(call.body)]() mutable {
    return read_response_ask(served, caller, std::move(body));
  };
  Result<ResponseAsk> read = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  if (!read) co_return read.error();
  if (!read->references.empty()) {
    Result<ResponseBodies> bodies = bodies_of(call.served, call.caller, read->references);
    net::OffloadTerms again = rendering;
    auto more = [&served = call.served, caller = call.caller, unread = std::move(read->unread),
                 bodies = std::move(bodies)]() mutable -> Result<ResponseAsk> {
      boost::json::object own = std::move(unread);  // which may be large, and is freed here in any case
      if (!bodies) return bodies.error();
      return read_response_again(served, caller, std::move(own), *bodies);
    };
    read = co_await call.frontend.offload.run(std::move(more), std::move(again));
    if (!read) co_return read.error();
  }
  Result<ConversationPtr> before = conversation_before(call.served, call.caller, *read);
  if (!before) co_return before.error();
  std::size_t shown = rendering.bytes;
  for (const auto& message : **before) shown += message->content.size() + message->reasoning.size();
  rendering.can_wait = std::max(rendering.can_wait, reading_can_wait(shown));
  ReadAsk out{std::move(*read), std::move(*before), std::move(rendering)};
  co_return std::move(out);
}

struct Rendered {
  ChatRequests requests;
  ConversationPtr conversation;
};

net::Awaitable<Result<Answer>> prepare(Call& call, Permit& permit) {
  ServedModel& served = call.served;
  Result<Permit> entered = enter(call);
  if (!entered) co_return entered.error();
  permit = std::move(*entered);
  Result<ReadAsk> read = co_await read_ask(call);
  if (!read) co_return read.error();

  ResponseAsk& ask = read->ask;
  ResponseHead head;
  head.id = random_id("resp_");
  head.model = served.config.name;
  head.created = served.clock.unix_seconds();
  head.echo = std::move(ask.echo);
  head.tenant = call.caller.tenant.id;
  head.store = ask.store;
  head.input = std::make_shared<const ResponseInput>(std::move(ask.input));
  const bool stream = ask.stream;
  std::vector<std::string> skipped = ask.chat.skipped_tools;
  auto work = [&served, given = std::move(ask), before = std::move(read->before)]() mutable -> Result<Rendered> {
    ResponseAsk own = std::move(given);  // its thousands of messages are freed here, not on the loop
    Rendered out;
    out.conversation = joined(*before, std::move(own.chat.messages));
    fill_chat(own, *out.conversation);
    auto requests = requests_from_chat(served, own.chat, std::move(own.draft), 1, own.reasoning);
    if (!requests) return requests.error();
    out.requests = std::move(*requests);
    return out;
  };
  Result<Rendered> made = co_await call.frontend.offload.run(std::move(work), std::move(read->terms));
  if (!made) co_return made.error();
  head.before = std::move(made->conversation);
  ChatRequests& requests = made->requests;
  Answer answer;
  answer.stream = stream;
  answer.skipped_tools = std::move(skipped);
  answer.writer = make_response_writer(std::move(head), requests.requests.front()->id, std::move(requests.format),
                                       served.responses, served.clock, answer.on_submitted);
  answer.request = std::move(requests.requests.front());
  co_return answer;
}

net::Awaitable<Result<std::string>> count(Call& call) {
  const Result<Permit> permit = enter_aside(call);
  if (!permit) co_return permit.error();
  Result<ReadAsk> read = co_await read_ask(call);
  if (!read) co_return read.error();
  auto work = [&served = call.served, given = std::move(read->ask),
               before = std::move(read->before)]() mutable -> Result<std::size_t> {
    ResponseAsk own = std::move(given);
    const ConversationPtr conversation = joined(*before, std::move(own.chat.messages));
    fill_chat(own, *conversation);
    const auto prompt = prompt_of_chat(served, own.chat);
    if (!prompt) return prompt.error();
    return prompt->tokens.size();
  };
  Result<std::size_t> tokens = co_await call.frontend.offload.run(std::move(work), std::move(read->terms));
  if (!tokens) co_return tokens.error();
  co_return "{\"object\":\"response.input_tokens\",\"input_tokens\":" + std::to_string(*tokens) + "}";
}

Result<const StoredResponse*> find(ServedModel& served, const Caller& caller, const net::HttpExchange& exchange) {
  const std::string& id = exchange.param("id");
  const StoredResponse* found = served.responses.find({caller.tenant.id, id}, served.clock.now());
  if (found == nullptr) return unknown_response(id);
  return found;
}

struct ListedItem {
  const std::string& id;
  const std::string& text;  // a JSON object
};

// Null: none. Of all pages, so that the loop need not find out what is on one.
std::size_t bytes_of_items(const ResponseInput* input) {
  std::size_t bytes = 0;
  if (input == nullptr) return bytes;
  for (const std::string& item : input->items) bytes += item.size();
  return bytes;
}

// Any thread.
Result<std::string> write_input_page(const ResponseInput* input, const PageWish& wish) {
  std::vector<ListedItem> items;
  if (input != nullptr) {
    items.reserve(input->ids.size());
    for (std::size_t i = 0; i < input->ids.size(); ++i) items.push_back({input->ids[i], input->items[i]});
  }
  std::vector<const ListedItem*> listed;
  for (const ListedItem& item : items) listed.push_back(&item);
  return write_page(std::move(listed), wish, [](JsonWriter& json, const ListedItem& item) { json.raw(item.text); });
}

}  // namespace

ServedModel* model_of_response(const ModelTable& models, std::uint32_t tenant, const std::string& id) {
  for (ServedModel* const served : models.all()) {
    if (served->responses.find({tenant, id}, served->clock.now()) != nullptr) return served;
  }
  return nullptr;
}

Handled handle_response(Call call) {
  Permit permit;
  const RequestNotePtr note = open_note(call);
  Result<Answer> answer = co_await prepare(call, permit);
  Handled delivering = deliver_prepared(std::move(call), std::move(answer), note, std::move(permit));
  Result<void> delivered = co_await std::move(delivering);
  co_return delivered;
}

Handled handle_response_tokens(Call call) {
  Result<std::string> answer = co_await count(call);
  if (!answer) co_return answer.error();
  co_await respond_json(call.exchange, std::move(*answer));
  co_return Result<void>();
}

Handled handle_response_command(Call call, ResponseCommand command) {
  Result<std::string> answer = command(call.served, call.caller, call.exchange);
  if (!answer) co_return answer.error();
  co_await respond_json(call.exchange, std::move(*answer));
  co_return Result<void>();
}

Result<std::string> show_response(ServedModel& served, const Caller& caller, const net::HttpExchange& exchange) {
  const auto found = find(served, caller, exchange);
  if (!found) return found.error();
  return *(*found)->body;
}

Result<std::string> delete_response(ServedModel& served, const Caller& caller, const net::HttpExchange& exchange) {
  const auto found = find(served, caller, exchange);
  if (!found) return found.error();
  if ((*found)->running) cancel_request(served, *(*found)->running);
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("id", (*found)->id);
  json.field("object", "response");
  json.field("deleted", true);
  json.end_object();
  served.responses.erase({caller.tenant.id, exchange.param("id")}, served.clock.now());
  return out;
}

Result<std::string> cancel_response(ServedModel& served, const Caller& caller, const net::HttpExchange& exchange) {
  const auto found = find(served, caller, exchange);
  if (!found) return found.error();
  if ((*found)->running) cancel_request(served, *(*found)->running);
  return *(*found)->body;
}

// Its own handler: an item may be as long as a body, and to copy that, or to escape its id, would hold the loop.
Handled handle_input_items(Call call) {
  const auto found = find(call.served, call.caller, call.exchange);
  if (!found) co_return found.error();
  auto wish = read_page_wish(call.exchange.request(), 20, 100);
  if (!wish) co_return wish.error();
  const ResponseInputPtr input = (*found)->input;
  const std::size_t bytes = bytes_of_items(input.get());
  auto work = [input, wish = std::move(*wish)] { return write_input_page(input.get(), wish); };
  Result<std::string> page = std::string();
  if (bytes <= kPageBytes) {
    page = work();
  } else {
    net::OffloadTerms terms = reading_terms(call);
    terms.bytes = bytes;
    page = co_await call.frontend.offload.run(std::move(work), std::move(terms));
  }
  if (!page) co_return page.error();
  co_await respond_json(call.exchange, std::move(*page));
  co_return Result<void>();
}

}  // namespace chasqui
